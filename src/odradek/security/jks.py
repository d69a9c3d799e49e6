"""Java key stores in the old JKS format, read only. No maintained package reads them.

    int32 magic FEEDFEED, int32 version (1 or 2), int32 number of entries
    entry: int32 tag, string alias, int64 time
        tag 1, private key: int32 size, encrypted key; int32 number of certificates, certificates
        tag 2, trusted certificate: a certificate
    certificate: string type (version 2 only), int32 size, DER
    SHA-1 over password, a fixed text and everything before

A key is encrypted by Sun's own scheme: XOR with a chain of SHA-1 digests over the password and the 20 bytes of salt
in front of it; 20 bytes of SHA-1 behind it tell whether the password was right.
"""

import hashlib
import hmac
from dataclasses import field
from struct import Struct, error

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass
from odradek.security.der import SEQUENCE, element_at, elements_of

MAGIC = b"\xfe\xed\xfe\xed"
_MAGIC_WORDS = b"Mighty Aphrodite"
_INT = Struct(">i")
_SHORT = Struct(">H")
_DIGEST_BYTES = 20
_OCTETS = 0x04
_ENTRIES_MAX = 10_000
_KEY_ENTRY, _CERTIFICATE_ENTRY = 1, 2


@dataclass(slots=True)
class JksEntries:
    """Entries in DER: keys in PKCS#8, decrypted."""

    keys: list[tuple[bytes, list[bytes]]] = field(default_factory=list)
    trusted: list[bytes] = field(default_factory=list)


def read_jks(data: bytes, store_password: str, key_password: str) -> JksEntries:
    """ConfigError if it isn't a key store, or a password is wrong."""
    _check_digest(data, store_password)
    try:
        return _Reader(data[:-_DIGEST_BYTES]).entries(key_password)
    except (error, IndexError, ValueError):
        raise ConfigError("the key store is damaged: it is not in the JKS format") from None


def _check_digest(data: bytes, password: str) -> None:
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    found = hashlib.sha1(_utf16(password) + _MAGIC_WORDS + body).digest()
    if not hmac.compare_digest(found, digest):
        raise ConfigError("the password of the key store is wrong, or the store is damaged")


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = len(MAGIC)

    def entries(self, key_password: str) -> JksEntries:
        found = JksEntries()
        version, count = self._int(), self._int()
        if version not in (1, 2) or not 0 <= count <= _ENTRIES_MAX:
            raise ValueError
        for _ in range(count):
            tag = self._int()
            self._take(self._short())  # alias
            self._take(8)  # time of creation
            if tag == _KEY_ENTRY:
                encrypted = self._take(self._int())
                chain = [self._certificate(version) for _ in range(self._int())]
                found.keys.append((_decrypted(encrypted, key_password), chain))
            elif tag == _CERTIFICATE_ENTRY:
                found.trusted.append(self._certificate(version))
            else:
                raise ValueError
        return found

    def _certificate(self, version: int) -> bytes:
        if version == 2:
            self._take(self._short())  # type, always X.509
        return self._take(self._int())

    def _int(self) -> int:
        (value,) = _INT.unpack(self._take(4))
        return int(value)

    def _short(self) -> int:
        (value,) = _SHORT.unpack(self._take(2))
        return int(value)

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if size < 0 or len(taken) < size:
            raise ValueError
        self._at += size
        return taken


def _decrypted(wrapped: bytes, password: str) -> bytes:
    """`wrapped` is PKCS#8's EncryptedPrivateKeyInfo, whose last field is the encrypted key as an octet string."""
    encrypted = _last_octets(wrapped)
    salt, body, check = encrypted[:20], encrypted[20:-20], encrypted[-20:]
    secret = _utf16(password)
    stream, digest = bytearray(), salt
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise ConfigError("ssl.key.password does not open the key in the key store")
    return key


def _last_octets(wrapped: bytes) -> bytes:
    """The second field of a DER sequence of an algorithm and an octet string."""
    _, octets = elements_of(wrapped, element_at(wrapped, 0, len(wrapped)), SEQUENCE)
    if octets.tag != _OCTETS:
        raise ValueError
    return wrapped[octets.first : octets.end]
