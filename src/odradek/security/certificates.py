"""Certificates of a small private authority: its own, and the ones it issues for hosts and users.

Keys are ECDSA on P-256: a handshake costs a tenth of one with RSA.
"""

from collections.abc import Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from odradek.base.value_classes import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder, GeneralName, Name

_CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A key and its certificate, both in PEM."""

    key: bytes = field(repr=False)
    certificate: bytes

    @property
    def expires(self) -> datetime:
        return expiry_of(self.certificate)


def expiry_of(certificate: bytes) -> datetime:
    from cryptography.x509 import load_pem_x509_certificate

    return load_pem_x509_certificate(certificate).not_valid_after_utc


def new_authority(common_name: str, days: int) -> IssuedCertificate:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        _builder(name, name, key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return _issued(key, _signed(builder, key))


def issue(authority: IssuedCertificate, common_name: str, hosts: Sequence[str], days: int) -> IssuedCertificate:
    """Issue a certificate for a server under the names and addresses of `hosts`, and for a client alike. Negative
    `days`: expired."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID

    issuer_key = load_pem_private_key(authority.key, None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _builder(_name(common_name), issuer.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    return _issued(key, _signed(builder, issuer_key))


def _name(common_name: str) -> "Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Odradek"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _host(host: str) -> "GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(subject: "Name", issuer: "Name", key: "EllipticCurvePrivateKey", days: int) -> "CertificateBuilder":
    from cryptography import x509

    now = datetime.now(UTC)
    begins = min(now - _CLOCK_SKEW, now + timedelta(days=days - 1))
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _signed(builder: "CertificateBuilder", key: "EllipticCurvePrivateKey") -> "Certificate":
    from cryptography.hazmat.primitives.hashes import SHA256

    return builder.sign(key, SHA256())


def _issued(key: "EllipticCurvePrivateKey", certificate: "Certificate") -> IssuedCertificate:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return IssuedCertificate(pem, certificate.public_bytes(Encoding.PEM))
