"""Subjects as Java writes them, and the rules that map them."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from odradek.base.errors import ConfigError
from odradek.security.distinguished_names import NoMatchingRule, PrincipalMapper, subject_of


def test_the_subject_is_written_as_java_writes_it() -> None:
    from datetime import UTC, datetime, timedelta

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "CZ"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "A, B"),
            x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c"),
            x509.NameAttribute(NameOID.COMMON_NAME, "alice"),
        ]
    )
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, SHA256())
    )
    assert subject_of(certificate.public_bytes(Encoding.DER)) == (
        r"CN=alice,1.2.840.113549.1.9.1=#16056140622e63,O=A\, B,C=CZ"
    )


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", "CN=Alice,OU=Sales,O=Unknown"),
        ("", "CN=Alice,OU=Sales,O=Unknown"),
        ("RULE:^CN=(.*?),OU=(.*?),O=.*$/$1@$2/", "Alice@Sales"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),.*$/$1/U , DEFAULT", "ALICE"),
        ("RULE:^CN=nobody$/x/, DEFAULT", "CN=Alice,OU=Sales,O=Unknown"),
        ("RULE:^CN=(.*?),.*$/$1@$4/", "Alice@$4"),
        ("RULE:^CN=(.*?),.*$/$12/", "Alice2"),
    ],
)
def test_rules(rules: str, name: str) -> None:
    assert PrincipalMapper(rules).name_of("CN=Alice,OU=Sales,O=Unknown") == name


def test_a_name_without_a_rule_is_refused() -> None:
    with pytest.raises(NoMatchingRule):
        PrincipalMapper("RULE:^CN=nobody$/x/").name_of("CN=Alice")


@pytest.mark.parametrize("rules", ["RULE", "RULE:abc", "RULE:a/b", "DEFAULT/L", "RULE:(/x/", "RULE:a/b/X"])
def test_rules_that_can_not_be_read(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapper(rules)
