"""Key stores and trust stores under Kafka's `ssl.*` names: PEM (in a file or in the setting), PKCS12, JKS.

What is read comes out as PEM, which is what the ssl module takes. The `cryptography` package is imported when a store
is read and not before.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass
from odradek.security.distinguished_names import subject_of
from odradek.security.jks import MAGIC as JKS_MAGIC
from odradek.security.jks import read_jks

CRL_KEY = "odradek.ssl.crl.location"
TLS_KEYS = (
    CRL_KEY,
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
"""Every setting that stores and contexts are made from."""
_STORE_BYTES_MAX = 16 << 20
_TYPES = ("JKS", "PKCS12", "PEM")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """A private key, decrypted, and its certificate chain, leaf first; both in PEM."""

    key: bytes = field(repr=False)
    chain: bytes


def key_material(settings: Mapping[str, str]) -> KeyMaterial | None:
    """Return this side's own key and certificates; None where the settings name none."""
    inline_key, inline_chain = settings.get("ssl.keystore.key"), settings.get("ssl.keystore.certificate.chain")
    location = settings.get("ssl.keystore.location")
    kind = _type_of(settings, "ssl.keystore.type")
    key_password = settings.get("ssl.key.password") or ""
    if inline_key or inline_chain:
        if kind != "PEM":
            raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain need ssl.keystore.type=PEM")
        if location:
            raise ConfigError("ssl.keystore.location can't be set together with ssl.keystore.certificate.chain")
        if not inline_key or not inline_chain:
            raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain must both be set")
        return _from_pem(f"{_unfolded(inline_key)}\n{_unfolded(inline_chain)}", key_password, "ssl.keystore.key")
    if not location:
        return None
    data = _read("ssl.keystore.location", location)
    store_password = settings.get("ssl.keystore.password") or ""
    if kind == "PEM":
        return _from_pem(data.decode("utf-8", "replace"), key_password, location)
    if data.startswith(JKS_MAGIC):
        entries = read_jks(data, store_password, key_password or store_password)
        if not entries.keys:
            raise ConfigError(f"ssl.keystore.location {location} has no private key")
        key, chain = entries.keys[0]
        return KeyMaterial(_key_pem(key), b"".join(map(_certificate_pem, chain)))
    return _from_pkcs12(data, store_password, location)


def trusted_certificates(settings: Mapping[str, str]) -> str | None:
    """Certificates of the trust store in PEM; None where the settings name none, and the system's are trusted."""
    inline, location = settings.get("ssl.truststore.certificates"), settings.get("ssl.truststore.location")
    kind = _type_of(settings, "ssl.truststore.type")
    if inline:
        if kind != "PEM":
            raise ConfigError("ssl.truststore.certificates needs ssl.truststore.type=PEM")
        if location:
            raise ConfigError("ssl.truststore.location can't be set together with ssl.truststore.certificates")
        return _certificates_in(_unfolded(inline), "ssl.truststore.certificates")
    if not location:
        return None
    data = _read("ssl.truststore.location", location)
    if kind == "PEM":
        return _certificates_in(data.decode("utf-8", "replace"), location)
    return _certificates_in(_trusted_in_store(data, settings.get("ssl.truststore.password") or "", location), location)


def store_files(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The files that a context is made from: when one of them changes, a new context is due."""
    locations = (settings.get("ssl.keystore.location"), settings.get("ssl.truststore.location"), settings.get(CRL_KEY))
    return tuple(location for location in locations if location)


def file_marks(paths: Iterable[str]) -> tuple[tuple[int, int, int], ...]:
    """Marks that change when a file is replaced or written; of one that is missing, zeros."""
    marks = []
    for path in paths:
        try:
            found = os.stat(path)
            marks.append((found.st_ino, found.st_mtime_ns, found.st_size))
        except OSError:
            marks.append((0, 0, 0))
    return tuple(marks)


def _type_of(settings: Mapping[str, str], name: str) -> str:
    kind = (settings.get(name) or "JKS").upper()
    if kind not in _TYPES:
        raise ConfigError(f"Invalid value {kind} for configuration {name}: valid are {', '.join(_TYPES)}")
    return kind


def _read(name: str, location: str) -> bytes:
    try:
        path = Path(location)
        if path.stat().st_size > _STORE_BYTES_MAX:
            raise ConfigError(
                f"Invalid value {location} for configuration {name}: larger than {_STORE_BYTES_MAX} bytes"
            )
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"Invalid value {location} for configuration {name}: {error.strerror}") from None


def _unfolded(pem: str) -> str:
    """PEM on one line, with blanks or a written \\n between its parts, as Kafka takes it from a properties file."""
    text = pem.replace("\\n", "\n")
    return re.sub(r"(-----(?:BEGIN|END) [A-Z ]+-----)", r"\n\1\n", text)


def _from_pem(text: str, password: str, where: str) -> KeyMaterial:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found = _KEY.search(text)
    if found is None:
        raise ConfigError(f"{where} has no PEM private key")
    try:
        key = load_pem_private_key(_normal(found[0]).encode(), password.encode() if password else None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"the private key in {where} can't be read: {error}") from None
    return KeyMaterial(_pem_of(key), _certificates_in(text, where).encode())


def _from_pkcs12(data: bytes, password: str, where: str) -> KeyMaterial:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    try:
        key, leaf, others = pkcs12.load_key_and_certificates(data, password.encode() or None)
    except ValueError:
        raise ConfigError(f"{where} is no PKCS12 or JKS store, or ssl.keystore.password is wrong") from None
    if key is None or leaf is None:
        raise ConfigError(f"{where} has no private key with a certificate")
    chain = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in (leaf, *others))
    return KeyMaterial(_pem_of(key), chain)


def _trusted_in_store(data: bytes, password: str, where: str) -> str:
    """Return the trusted entries. The chain of a private key in the same store is not among them, as in Java: trusted,
    its issuer could let anyone in."""
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    if data.startswith(JKS_MAGIC):
        entries = read_jks(data, password, password)
        return b"".join(map(_certificate_pem, entries.trusted)).decode()
    try:
        store = pkcs12.load_pkcs12(data, password.encode() or None)
    except ValueError:
        raise ConfigError(f"{where} is no PKCS12 or JKS store, or ssl.truststore.password is wrong") from None
    trusted = [entry for entry in (store.cert, *store.additional_certs) if entry is not None]
    if store.key is not None:
        trusted = [entry for entry in store.additional_certs if _is_trusted_entry(entry)]
    return b"".join(entry.certificate.public_bytes(Encoding.PEM) for entry in trusted).decode()


def _is_trusted_entry(entry: Any) -> bool:
    """Java's tools name a trusted entry by its alias, and a certificate of a chain by its subject; others don't name
    the latter."""
    from cryptography.hazmat.primitives.serialization import Encoding

    if entry.friendly_name is None:
        return False
    return bool(
        entry.friendly_name.decode("utf-8", "replace") != subject_of(entry.certificate.public_bytes(Encoding.DER))
    )


def _certificates_in(text: str, where: str) -> str:
    found = [_normal(match[0]) for match in _CERTIFICATE.finditer(text)]
    if not found:
        raise ConfigError(f"{where} has no certificate")
    return "".join(found)


def _normal(block: str) -> str:
    """A PEM block with one line per line: blanks inside of the base64 become line ends, headers stay."""
    lines = [line.strip() for line in block.strip().splitlines()]
    headers = [line for line in lines[1:-1] if ":" in line]
    body = [part for line in lines[1:-1] if ":" not in line for part in line.split()]
    return "\n".join([lines[0], *headers, *([""] if headers else []), *body, lines[-1], ""])


def _pem_of(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


def _key_pem(der: bytes) -> bytes:
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        return _pem_of(load_der_private_key(der, None))
    except (ValueError, TypeError):
        raise ConfigError("the key store's private key has a kind that can't be used") from None


def _certificate_pem(der: bytes) -> bytes:
    from ssl import DER_cert_to_PEM_cert

    return DER_cert_to_PEM_cert(der).encode()
