"""An issuer of bearer tokens: keys, a key set, tokens with any header and claims, and its endpoints over http."""

import json
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

CLIENT_ID, CLIENT_SECRET = "app", "s3cret of the client"
_HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
_CURVES = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _number(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Issuer:
    def __init__(self, key_id: str = "one", curve: str = "P-256", rsa_bits: int = 2048) -> None:
        self.key_id = key_id
        self._curve = curve
        self._ec = ec.generate_private_key(_CURVES[curve])
        self._rsa = rsa.generate_private_key(65537, rsa_bits)

    @property
    def key_set(self) -> dict[str, Any]:
        numbers, point = self._rsa.public_key().public_numbers(), self._ec.public_key().public_numbers()
        size = (self._ec.key_size + 7) // 8
        x, y = encoded(point.x.to_bytes(size, "big")), encoded(point.y.to_bytes(size, "big"))
        return {
            "keys": [
                {"kty": "RSA", "kid": f"{self.key_id}-rsa", "n": _number(numbers.n), "e": _number(numbers.e)},
                {"kty": "EC", "kid": f"{self.key_id}-ec", "crv": self._curve, "x": x, "y": y, "use": "sig"},
            ]
        }

    def sign(self, algorithm: str, data: bytes) -> bytes:
        digest = _HASHES[algorithm[2:]]
        if algorithm.startswith("ES"):
            size = (self._ec.key_size + 7) // 8
            r, s = decode_dss_signature(self._ec.sign(data, ec.ECDSA(digest)))
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        if algorithm.startswith("PS"):
            return self._rsa.sign(data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
        return self._rsa.sign(data, padding.PKCS1v15(), digest)

    def token(
        self, claims: dict[str, Any] | None = None, algorithm: str = "ES256", header: dict[str, Any] | None = None
    ) -> str:
        """Claims and header besides the usual ones; None takes one away."""
        now = time.time()
        key_id = f"{self.key_id}-{'ec' if algorithm.startswith('ES') else 'rsa'}"
        parts = (
            {"alg": algorithm, "kid": key_id, **(header or {})},
            {"sub": "alice", "iat": now, "exp": now + 600, **(claims or {})},
        )
        kept = [{name: value for name, value in part.items() if value is not None} for part in parts]
        signed = ".".join(encoded(json.dumps(part).encode()) for part in kept)
        return f"{signed}.{encoded(self.sign(algorithm, signed.encode()))}"


def unsigned(claims: dict[str, Any], header: dict[str, Any] | None = None, signature: bytes = b"") -> str:
    parts = (header or {"alg": "none"}, claims)
    return ".".join(encoded(json.dumps(part).encode()) for part in parts) + "." + encoded(signature)


class Endpoints:
    """`/jwks` and `/token` of an issuer, which can be changed while they are served."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.claims: dict[str, Any] = {}
        self.lifetime_s = 600.0
        self.asked: list[tuple[str, str]] = []
        """Path and body of each request."""
        self.failures = 0
        """Number of requests to answer with status 503."""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def answer(self, path: str, body: str, credentials: str) -> tuple[int, dict[str, Any]]:
        self.asked.append((path, body))
        if self.failures:
            self.failures -= 1
            return 503, {}
        if path == "/jwks":
            return 200, self.issuer.key_set
        if (
            path == "/token"
            and b64decode(credentials.removeprefix("Basic ")).decode() == f"{CLIENT_ID}:{CLIENT_SECRET}"
        ):
            claims = {"exp": time.time() + self.lifetime_s, **self.claims}
            return 200, {"access_token": self.issuer.token(claims), "token_type": "Bearer"}
        return 401, {"error": "invalid_client"}


@contextmanager
def serving(issuer: Issuer) -> Iterator[Endpoints]:
    endpoints = Endpoints(issuer)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            status, answer = endpoints.answer(self.path, body, self.headers.get("Authorization") or "")
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("localhost", 0), Handler) as server:
        endpoints.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield endpoints
        finally:
            server.shutdown()
