"""Revocation lists: a certificate on its authority's list is refused, and one without a current list too."""

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from odradek.base.errors import ConfigError
from odradek.security.certificates import IssuedCertificate, issue, new_authority
from odradek.security.tls_contexts import client_context, server_context

AUTHORITY = new_authority("CA", 2)
OTHER = new_authority("other CA", 2)
SERVER = issue(AUTHORITY, "server", ["localhost"], 2)
GOOD, REVOKED = issue(AUTHORITY, "good", [], 2), issue(AUTHORITY, "revoked", [], 2)


def revocations(authority: IssuedCertificate, *revoked: IssuedCertificate, days: int = 1) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    builder = x509.CertificateRevocationListBuilder().issuer_name(issuer.subject)
    builder = builder.last_update(now - datetime.timedelta(days=3)).next_update(now + datetime.timedelta(days=days))
    for one in revoked:
        serial = x509.load_pem_x509_certificate(one.certificate).serial_number
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
        builder = builder.add_revoked_certificate(entry.build())
    key = load_pem_private_key(authority.key, None)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)  # type: ignore[arg-type]


def settings_of(directory: Path, own: IssuedCertificate, **others: str) -> dict[str, str]:
    own_file, authority = directory / f"{id(own)}.pem", directory / "ca.pem"
    own_file.write_bytes(own.key + own.certificate)
    authority.write_bytes(AUTHORITY.certificate)
    stores = {"ssl.keystore.location": str(own_file), "ssl.truststore.location": str(authority)}
    return {**stores, "ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM", **others}


def is_accepted(directory: Path, own: IssuedCertificate, lists: bytes) -> bool:
    """A handshake in memory."""
    (directory / "crl.pem").write_bytes(lists)
    listener = settings_of(directory, SERVER) | {"odradek.ssl.crl.location": str(directory / "crl.pem")}
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = server_context(listener | {"ssl.client.auth": "required"})
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context(settings_of(directory, own)).wrap_bio(to_client, to_server, server_hostname="localhost")
    try:
        for _ in range(5):
            for side in (client, server):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
    except ssl.SSLError:
        return False
    return server.getpeercert() is not None


def test_a_revoked_certificate_is_refused(tmp_path: Path) -> None:
    lists = revocations(AUTHORITY, REVOKED) + revocations(OTHER)
    assert is_accepted(tmp_path, GOOD, lists)
    assert not is_accepted(tmp_path, REVOKED, lists)


def test_without_a_current_list_of_its_authority_a_certificate_is_refused(tmp_path: Path) -> None:
    assert not is_accepted(tmp_path, GOOD, revocations(OTHER))
    assert not is_accepted(tmp_path, GOOD, revocations(AUTHORITY, days=-1))


@pytest.mark.parametrize("data", [b"", b"text", AUTHORITY.certificate, revocations(AUTHORITY) + OTHER.certificate])
def test_a_file_that_is_no_list_is_refused(tmp_path: Path, data: bytes) -> None:
    """Certificates in it would be trusted."""
    with pytest.raises(ConfigError, match=r"odradek\.ssl\.crl\.location"):
        is_accepted(tmp_path, GOOD, data)
