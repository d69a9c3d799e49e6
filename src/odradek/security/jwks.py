"""Key sets of token issuers (RFC 7517): public keys for the signatures of JSON Web Tokens. Pure.

Keys of another kind, for another use, or too weak are left out; private parts and symmetric keys are never used.
"""

import binascii
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from odradek.base.value_classes import dataclass

KEYS_MAX = 500
_RSA_BITS_MIN, _RSA_BITS_MAX = 2048, 8192
_CURVES: Mapping[str, type[ec.EllipticCurve]] = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1, "P-521": ec.SECP521R1}
_HASHES: Mapping[str, type[hashes.HashAlgorithm]] = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
_CURVE_OF = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")


class UnknownKey(Exception):
    """The key set has no key for a token. A newer set may have it."""

    def __init__(self, key_id: str | None) -> None:
        super().__init__("no key of the issuer fits the token")
        self.key_id = key_id


@dataclass(frozen=True, slots=True)
class VerificationKey:
    key_id: str | None
    algorithm: str | None
    """The only algorithm that it is meant for, where its issuer tells one."""
    public_key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey

    def fits(self, algorithm: str) -> bool:
        if self.algorithm is not None and self.algorithm != algorithm:
            return False
        if isinstance(self.public_key, rsa.RSAPublicKey):
            return algorithm[:2] in ("RS", "PS")
        return _CURVE_OF.get(algorithm) == self.public_key.curve.name

    def verifies(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        digest = _HASHES[algorithm[2:]]()
        try:
            if isinstance(self.public_key, rsa.RSAPublicKey):
                fill = (
                    padding.PKCS1v15()
                    if algorithm.startswith("RS")
                    else padding.PSS(padding.MGF1(digest), digest.digest_size)
                )
                self.public_key.verify(signature, signed, fill, digest)
            else:
                size = (self.public_key.key_size + 7) // 8
                if len(signature) != 2 * size:
                    return False
                r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
                self.public_key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(digest))
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class KeySet:
    keys: tuple[VerificationKey, ...] = ()

    def key_for(self, algorithm: str, key_id: str | None) -> VerificationKey | None:
        """A token without key id is verified only where one key can be meant."""
        fitting = [key for key in self.keys if key.fits(algorithm) and key_id in (None, key.key_id)]
        return fitting[0] if len(fitting) == 1 else None


def parse_key_set(data: bytes) -> KeySet:
    """ValueError where it is no key set, or none of its keys can be used."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("too deep") from None
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list) or len(listed) > KEYS_MAX:
        raise ValueError(f"a key set is a JSON object with at most {KEYS_MAX} keys")
    keys = tuple(key for entry in listed if isinstance(entry, dict) and (key := _key(entry)) is not None)
    if not keys:
        raise ValueError("no RSA key of 2048 bits or more, and no EC key of P-256, P-384 or P-521")
    return KeySet(keys)


def _key(entry: Mapping[str, Any]) -> VerificationKey | None:
    operations, algorithm, key_id = entry.get("key_ops"), entry.get("alg"), entry.get("kid")
    if entry.get("use") not in (None, "sig") or (isinstance(operations, list) and "verify" not in operations):
        return None
    if (algorithm is not None and algorithm not in ALGORITHMS) or not isinstance(key_id, str | None):
        return None
    try:
        public_key = _rsa_key(entry) if entry.get("kty") == "RSA" else _ec_key(entry)
    except (ValueError, binascii.Error):
        return None
    return None if public_key is None else VerificationKey(key_id, algorithm, public_key)


def _rsa_key(entry: Mapping[str, Any]) -> rsa.RSAPublicKey | None:
    modulus = _number(entry, "n")
    if not _RSA_BITS_MIN <= modulus.bit_length() <= _RSA_BITS_MAX:
        return None
    return rsa.RSAPublicNumbers(_number(entry, "e"), modulus).public_key()


def _ec_key(entry: Mapping[str, Any]) -> ec.EllipticCurvePublicKey | None:
    curve = _CURVES.get(str(entry.get("crv"))) if entry.get("kty") == "EC" else None
    if curve is None:
        return None
    return ec.EllipticCurvePublicNumbers(_number(entry, "x"), _number(entry, "y"), curve()).public_key()


def _number(entry: Mapping[str, Any], name: str) -> int:
    text = entry.get(name)
    if not isinstance(text, str) or not text.isascii():
        raise ValueError(name)
    return int.from_bytes(urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")
