"""Bearer tokens: signatures, claims, and every way to be refused."""

import hashlib
import hmac
import json
import random
import time
from typing import Any

import pytest

from odradek.security.jwks import ALGORITHMS, KeySet, UnknownKey, parse_key_set
from odradek.security.jwt import TokenRefused, TokenRules, lifetime_of, unsecured, verified
from token_issuer import Issuer, encoded, unsigned

ISSUERS = {"ES256": Issuer(), "ES384": Issuer("384", "P-384"), "ES512": Issuer("521", "P-521")}
ISSUER = ISSUERS["ES256"]
KEYS = parse_key_set(json.dumps(ISSUER.key_set).encode())


def now_ms() -> int:
    return int(time.time() * 1000)


def judge(text: str, rules: TokenRules | None = None, keys: KeySet = KEYS, shift_s: float = 0) -> str:
    return verified(text, keys, rules or TokenRules(), now_ms() + int(shift_s * 1000)).principal


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm(algorithm: str) -> None:
    issuer = ISSUERS.get(algorithm, ISSUER)
    keys = parse_key_set(json.dumps(issuer.key_set).encode())
    token = issuer.token(algorithm=algorithm)
    assert judge(token, keys=keys) == "alice"
    assert judge(issuer.token(algorithm=algorithm, header={"kid": None}), keys=keys) == "alice"
    head, _, signature = token.rpartition(".")
    changed = encoded(bytes([*[ord("x")] * 8])) + signature[11:]
    with pytest.raises(TokenRefused, match="signature"):
        judge(f"{head}.{changed}", keys=keys)


def test_the_key_is_the_issuer_s() -> None:
    other = Issuer()  # the same key ids, other keys
    with pytest.raises(TokenRefused, match="signature"):
        judge(other.token())
    with pytest.raises(UnknownKey):
        judge(Issuer("two").token())
    own_key = other.key_set["keys"][1]
    with pytest.raises(TokenRefused, match="signature"):
        judge(other.token(header={"jwk": own_key, "jku": "https://evil.example/jwks"}))


def test_none_and_symmetric_signatures_are_refused() -> None:
    claims = {"sub": "alice", "iat": time.time(), "exp": time.time() + 60}
    for algorithm in ("none", "None", "NONE", "HS256", "", None, 5):
        with pytest.raises(TokenRefused):
            judge(unsigned(claims, {"alg": algorithm, "kid": "one-ec"}))
    # The public key as the secret of an HMAC, by a library that lets the token choose.
    head = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": "one-rsa"}, claims))
    secret = json.dumps(ISSUER.key_set["keys"][0]).encode()
    with pytest.raises(TokenRefused):
        judge(f"{head}.{encoded(hmac.digest(secret, head.encode(), hashlib.sha256))}")


def test_an_algorithm_of_another_kind_of_key_is_refused() -> None:
    for algorithm in ("RS256", "PS256", "ES384"):
        with pytest.raises((TokenRefused, UnknownKey)):
            judge(ISSUER.token(header={"alg": algorithm}))
    bound = json.loads(json.dumps(ISSUER.key_set))
    bound["keys"][0]["alg"] = "PS256"
    with pytest.raises(UnknownKey):
        judge(ISSUER.token(algorithm="RS256"), keys=parse_key_set(json.dumps(bound).encode()))


def test_a_signature_of_zeros_is_refused() -> None:
    """CVE-2022-21449."""
    head = ISSUER.token().rpartition(".")[0]
    for signature in (bytes(64), bytes(0), bytes(63), b"\xff" * 64):
        with pytest.raises(TokenRefused):
            judge(f"{head}.{encoded(signature)}")


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": None}, "no exp"),
        ({"iat": None}, "no iat"),
        ({"exp": 5.0}, "expired"),
        ({"exp": "later"}, "not a time"),
        ({"exp": True}, "not a time"),
        ({"exp": 1e300}, "not a time"),
        ({"exp": -1}, "not a time"),
        ({"iat": time.time() + 7200}, "ends before it begins"),
        ({"nbf": time.time() + 3000}, "not valid yet"),
        ({"sub": None}, "sub"),
        ({"sub": "  "}, "sub"),
        ({"sub": ["alice"]}, "sub"),
        ({"aud": "others"}, "audience"),
        ({"aud": ["others"]}, "audience"),
        ({"aud": 5}, "aud"),
        ({"scope": 5}, "scope"),
        ({"scope": ["a", ""]}, "scope"),
    ],
)
def test_claims_that_are_refused(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(TokenRefused, match=why):
        judge(ISSUER.token(claims))


def test_expected_audience_issuer_and_principal() -> None:
    rules = TokenRules(frozenset({"kafka", "logs"}), "https://issuer", 30, "scp", "email")
    good = {"aud": ["x", "logs"], "iss": "https://issuer", "email": "a@b", "scp": ["read", "write"]}
    assert judge(ISSUER.token(good), rules) == "a@b"
    for bad in ({"aud": None}, {"aud": "x"}, {"iss": None}, {"iss": "https://issuer/"}, {"email": None}):
        with pytest.raises(TokenRefused):
            judge(ISSUER.token(good | bad), rules)


def test_the_clock_may_differ_by_the_skew() -> None:
    token = ISSUER.token({"nbf": time.time()})
    assert judge(token, shift_s=620) == "alice"
    assert judge(token, shift_s=-20) == "alice"
    for shift_s in (640, -40):
        with pytest.raises(TokenRefused):
            judge(token, shift_s=shift_s)


def test_unsecured_tokens() -> None:
    now = time.time()
    rules = TokenRules(requires_issue_time=False, required_scopes=frozenset({"a"}), takes_any_audience=True)
    claims = {"sub": "bob", "exp": now + 60, "scope": "a b"}
    assert unsecured(unsigned(claims), rules, now_ms()).principal == "bob"
    with pytest.raises(TokenRefused) as refused:
        unsecured(unsigned(claims | {"scope": "b"}), rules, now_ms())
    assert refused.value.missing_scope == "a"
    for other in (ISSUER.token(), unsigned(claims, {"alg": "none"}, b"x")):
        with pytest.raises(TokenRefused):
            unsecured(other, rules, now_ms())
    assert lifetime_of(unsigned(claims)) == (None, int((now + 60) * 1000))


def test_broken_tokens_are_refused() -> None:
    """Any damage, twins among the claims, JSON too deep, numbers too long."""
    token = ISSUER.token()
    signature = encoded(bytes(64))
    header = encoded(json.dumps({"alg": "ES256", "kid": "one-ec"}).encode())
    bodies = [b'{"sub":"a","sub":"b"}', b"[" * 100_000, b"[]", b'{"exp":NaN}', b'{"exp":' + b"9" * 9000 + b"}", b"\xff"]
    made = ["", ".", "..", "a.b", "a.b.c.d", "=.=.=", "é.é.é", *[f"{header}.{encoded(b)}.{signature}" for b in bodies]]
    chance = random.Random(7)
    for _ in range(300):
        at = chance.randrange(len(token))
        made.append(token[:at] + chance.choice(["", "A", ".", "=", "_", "\0"]) + token[at + 1 :])
    for text in made:
        if text != token:
            with pytest.raises((TokenRefused, UnknownKey)):
                judge(text)
    now = time.time()
    head, twins = encoded(b'{"alg":"none"}'), f'{{"sub":"alice","iat":{now},"exp":{now + 60},"sub":"bob"}}'
    with pytest.raises(TokenRefused, match="JSON"):  # whose signature would be right
        unsecured(f"{head}.{encoded(twins.encode())}.", TokenRules(), now_ms())
    with pytest.raises(TokenRefused, match="critical"):
        judge(ISSUER.token(header={"crit": ["b64"], "b64": False}))


def test_key_sets() -> None:
    listed = ISSUER.key_set["keys"]
    weak = Issuer(rsa_bits=1024).key_set["keys"][0]
    off_curve = {**listed[1], "y": listed[1]["x"]}
    useless = [
        weak,
        off_curve,
        {**listed[1], "use": "enc"},
        {**listed[1], "key_ops": ["sign"]},
        {"kty": "oct", "k": "x"},
    ]
    for key in (*useless, 5, {}, {**listed[0], "alg": "HS256"}, {**listed[0], "n": None}, {**listed[1], "kid": 5}):
        with pytest.raises(ValueError, match="no RSA key"):
            parse_key_set(json.dumps({"keys": [key]}).encode())
        assert len(parse_key_set(json.dumps({"keys": [key, *listed]}).encode()).keys) == 2
    for data in (b"", b"[]", b"{}", b"[" * 100_000, json.dumps({"keys": listed * 300}).encode()):
        with pytest.raises(ValueError):
            parse_key_set(data)
    # Two keys that a token without key id could mean.
    twice = parse_key_set(json.dumps({"keys": [listed[1], {**listed[1], "kid": "z"}]}).encode())
    with pytest.raises(UnknownKey):
        judge(ISSUER.token(header={"kid": None}), keys=twice)
