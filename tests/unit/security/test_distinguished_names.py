"""Subjects as Java writes them, and the rules that map them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from odradek.base.errors import ConfigError
from odradek.security.distinguished_names import NoMatchingRule, PrincipalMapper, subject_of

KEY = ec.generate_private_key(ec.SECP256R1())
BMP, BITS, PRINTABLE = _ASN1Type.BMPString, _ASN1Type.BitString, _ASN1Type.PrintableString


def certificate_of(*rdns: list[x509.NameAttribute[str]]) -> bytes:
    name, now = x509.Name([x509.RelativeDistinguishedName(rdn) for rdn in rdns]), datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, KEY.public_key(), 1, now, now + timedelta(days=1))
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.DER)


def attribute(oid: x509.ObjectIdentifier, value: Any, kind: _ASN1Type | None = None) -> Any:
    return x509.NameAttribute(oid, value) if kind is None else x509.NameAttribute(oid, value, kind)


def test_the_subject_is_written_as_java_writes_it() -> None:
    parts = (
        attribute(NameOID.COUNTRY_NAME, "CZ"),
        attribute(NameOID.ORGANIZATION_NAME, "A, B"),
        attribute(NameOID.EMAIL_ADDRESS, "a@b.c"),
        attribute(NameOID.COMMON_NAME, "alice"),
    )
    assert subject_of(certificate_of(*([part] for part in parts))) == (
        r"CN=alice,1.2.840.113549.1.9.1=#16056140622e63,O=A\, B,C=CZ"
    )
    together = [attribute(NameOID.ORGANIZATION_NAME, "y"), attribute(NameOID.COMMON_NAME, "x")]
    assert subject_of(certificate_of(together)) == "CN=x+O=y"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a=b", r"a\=b"),
        ("a#b", r"a\#b"),
        ("#a", r"\#a"),
        ('a+b"c\\d<e>f;g,h', r"a\+b\"c\\d\<e\>f\;g\,h"),
        (" a  b ", r"\ a  b\ "),
        ("  a  ", r"\ \ a\ \ "),
        (" ", r"\ "),
        ("ä€𐍈*/\x7f\n", "ä€𐍈*/\x7f\n"),
        ("=", r"\="),
    ],
)
def test_names_are_escaped_as_java_escapes_them(value: str, shown: str) -> None:
    """What Java's X500Principal said of the same certificates: an ACL of Kafka, a denial too, names the user so."""
    assert subject_of(certificate_of([attribute(NameOID.COMMON_NAME, value)])) == f"CN={shown}"


@pytest.mark.parametrize(
    ("oid", "value", "kind", "shown"),
    [
        (NameOID.SERIAL_NUMBER, "12", PRINTABLE, "2.5.4.5=#13023132"),
        (NameOID.TITLE, "T", None, "2.5.4.12=#0c0154"),
        (NameOID.GIVEN_NAME, "ä", None, "2.5.4.42=#0c02c3a4"),
        (NameOID.SURNAME, "x" * 200, None, f"2.5.4.4=#0c81c8{'78' * 200}"),
        (NameOID.X500_UNIQUE_IDENTIFIER, b"ab", BITS, "2.5.4.45=#03026162"),
        (x509.ObjectIdentifier("2.999.3"), "v", None, "2.999.3=#0c0176"),
        (NameOID.COMMON_NAME, "x", BMP, r"CN=\00x"),
    ],
)
def test_other_attributes_are_shown_as_they_are_encoded(oid: Any, value: Any, kind: Any, shown: str) -> None:
    assert subject_of(certificate_of([attribute(oid, value, kind)])) == shown


def test_what_is_no_certificate_has_no_subject() -> None:
    whole = certificate_of([attribute(NameOID.COMMON_NAME, "alice")])
    for data in (b"", b"\x30", b"\x30\x80", b"\x30\x84\xff\xff\xff\xff", b"\x30\x02\x30\x00", whole[:100], bytes(50)):
        with pytest.raises(ValueError, match=r"."):
            subject_of(data)


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


def test_a_name_that_would_keep_a_pattern_busy_is_refused() -> None:
    mapper = PrincipalMapper("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1/,DEFAULT")
    assert mapper.name_of("CN=" + "a" * 1000) == "CN=" + "a" * 1000
    with pytest.raises(NoMatchingRule):
        mapper.name_of("CN=" + ",OU=" * 400)


@pytest.mark.parametrize("rules", ["RULE", "RULE:abc", "RULE:a/b", "DEFAULT/L", "RULE:(/x/", "RULE:a/b/X"])
def test_rules_that_can_not_be_read(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapper(rules)
