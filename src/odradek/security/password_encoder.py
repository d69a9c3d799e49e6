"""Passwords as Kafka keeps them in ZooKeeper (`password.encoder.*`): encrypted with a key that is made from a secret.

    cipherAlgorithm:AES/CBC/PKCS5Padding,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,keyLength:128,iterations:4096,
    salt:…,initializationVector:…,encryptedPassword:…,passwordLength:9

Each text says how it was made, so that settings can change; brokers of both kinds read each other's.
"""

import binascii
import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass

_CBC, _GCM = "AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"
_HASHES = {f"PBKDF2WithHmacSHA{size}": f"sha{size}" for size in (1, 224, 256, 384, 512)}
_KEY_BITS = (128, 192, 256)
_ITERATIONS_MAX = 10_000_000
_SALT_BYTES = 256
_GCM_IV_BYTES, _GCM_TAG_BITS, _BLOCK_BITS = 12, 128, 128


class Undecodable(Exception):
    """The text isn't one of ours, or was made with another secret."""


@dataclass(frozen=True, slots=True)
class PasswordEncoder:
    secret: str = field(repr=False)
    cipher: str = _CBC
    key_factory: str = "PBKDF2WithHmacSHA512"
    key_bits: int = 128
    iterations: int = 4096

    def __post_init__(self) -> None:
        """ConfigError names a setting that can't be obeyed."""
        checks = (
            ("password.encoder.cipher.algorithm", self.cipher, (_CBC, _GCM)),
            ("password.encoder.keyfactory.algorithm", self.key_factory, tuple(_HASHES)),
            ("password.encoder.key.length", self.key_bits, _KEY_BITS),
        )
        for key, value, valid in checks:
            if value not in valid:
                listed = ", ".join(map(str, valid))
                raise ConfigError(f"Invalid value {value} for configuration {key}: valid here are {listed}")

    def encode(self, password: str) -> str:
        salt, data = os.urandom(_SALT_BYTES), password.encode()
        key = _key(self.secret, self.key_factory, salt, self.iterations, self.key_bits)
        fields = {
            "cipherAlgorithm": self.cipher,
            "keyFactoryAlgorithm": self.key_factory,
            "keyLength": str(self.key_bits),
            "iterations": str(self.iterations),
            "salt": b64encode(salt).decode(),
            "passwordLength": str(_java_length(password)),
        }
        if self.cipher == _GCM:
            vector = os.urandom(_GCM_IV_BYTES)
            encrypted = AESGCM(key).encrypt(vector, data, None)
            fields["authenticationTagLength"] = str(_GCM_TAG_BITS)
        else:
            vector = os.urandom(_BLOCK_BITS // 8)
            padder, encryptor = PKCS7(_BLOCK_BITS).padder(), Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
            encrypted = encryptor.update(padder.update(data) + padder.finalize()) + encryptor.finalize()
        fields["initializationVector"] = b64encode(vector).decode()
        fields["encryptedPassword"] = b64encode(encrypted).decode()
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, text: str) -> str:
        """Undecodable: it was made with another secret, or is damaged."""
        fields = dict(pair.partition(":")[::2] for pair in text.split(","))
        try:
            password = self._decrypted(fields).decode()
            if _java_length(password) != int(fields["passwordLength"]):
                raise ValueError
        except (KeyError, ValueError, binascii.Error, InvalidTag):
            raise Undecodable("Password could not be decoded") from None
        return password

    def _decrypted(self, fields: Mapping[str, str]) -> bytes:
        iterations, key_bits, cipher = int(fields["iterations"]), int(fields["keyLength"]), fields["cipherAlgorithm"]
        if not 0 < iterations <= _ITERATIONS_MAX or key_bits not in _KEY_BITS or cipher not in (_CBC, _GCM):
            raise ValueError(cipher)
        names = ("salt", "initializationVector", "encryptedPassword")
        salt, vector, encrypted = (b64decode(fields[name], validate=True) for name in names)
        key = _key(self.secret, fields["keyFactoryAlgorithm"], salt, iterations, key_bits)
        if cipher == _GCM:
            if int(fields["authenticationTagLength"]) != _GCM_TAG_BITS:
                raise ValueError("authenticationTagLength")
            return AESGCM(key).decrypt(vector, encrypted, None)
        decryptor, unpadder = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor(), PKCS7(_BLOCK_BITS).unpadder()
        return unpadder.update(decryptor.update(encrypted) + decryptor.finalize()) + unpadder.finalize()


def _key(secret: str, factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
    return hashlib.pbkdf2_hmac(_HASHES[factory], secret.encode(), salt, iterations, bits // 8)


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
