"""TLS contexts from Kafka's `ssl.*` settings: one for a listener, one for outgoing connections.

Java's names of protocols and cipher suites are taken; OpenSSL does the work. TLS 1.2 and 1.3 are offered, older
protocols are refused: OpenSSL's default security level has no cipher for them.
"""

import os
import re
import ssl
from collections.abc import Mapping

from odradek.base.errors import ConfigError
from odradek.security.stores import CRL_KEY, KeyMaterial, key_material, trusted_certificates

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_CRL_BYTES_MAX = 16 << 20
_NO_SUITE = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"  # a signal, which Java lists among the suites and OpenSSL always gives
_SUITES_1_3 = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})


def server_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of a listener. ConfigError where a setting can't be used: a listener without a key doesn't
    start."""
    material = key_material(settings)
    if material is None:
        raise ConfigError(
            "an SSL or SASL_SSL listener needs a private key: set ssl.keystore.location, or ssl.keystore.key and "
            "ssl.keystore.certificate.chain with ssl.keystore.type=PEM"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _prepare(context, settings)
    # A client may not ask for another handshake on a connection: each costs the server more than the client.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _load_key(context, material)
    context.verify_mode = _client_auth(settings)
    if context.verify_mode is not ssl.CERT_NONE:
        _load_trusted(context, settings, ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of outgoing connections. The server's name is verified unless the identification algorithm
    is set to nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _prepare(context, settings)
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", ""):
        raise ConfigError(
            f"Invalid value {algorithm} for configuration ssl.endpoint.identification.algorithm: valid are https and "
            "nothing, which verifies no host names"
        )
    context.check_hostname = algorithm == "https"
    _load_trusted(context, settings, ssl.Purpose.SERVER_AUTH)
    material = key_material(settings)
    if material is not None:
        _load_key(context, material)
    return context


def _client_auth(settings: Mapping[str, str]) -> ssl.VerifyMode:
    text = settings.get("ssl.client.auth") or "none"
    try:
        return _CLIENT_AUTH[text.lower()]
    except KeyError:
        raise ConfigError(
            f"Invalid value {text} for configuration ssl.client.auth: valid are {', '.join(_CLIENT_AUTH)}"
        ) from None


def _prepare(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    context.options |= ssl.OP_NO_COMPRESSION
    # As in Java: a certificate in the trust store is trusted, whether it is a root or not.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    versions = _versions(settings)
    names = [name for name in re.split(r"\s*,\s*", (settings.get("ssl.cipher.suites") or "").strip()) if name]
    if names:
        versions = _with_suites(context, names, versions)
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _versions(settings: Mapping[str, str]) -> list[ssl.TLSVersion]:
    text = settings.get("ssl.enabled.protocols") or "TLSv1.2,TLSv1.3"
    versions = []
    for name in re.split(r"\s*,\s*", text.strip()):
        if name not in _VERSIONS:
            raise ConfigError(
                f"Invalid value {name} for configuration ssl.enabled.protocols: valid are {', '.join(_VERSIONS)}"
            )
        versions.append(_VERSIONS[name])
    protocol = settings.get("ssl.protocol") or "TLSv1.3"
    if protocol not in (*_VERSIONS, "TLS"):
        raise ConfigError(
            f"Invalid value {protocol} for configuration ssl.protocol: valid are TLS, {', '.join(_VERSIONS)}"
        )
    highest = _VERSIONS.get(protocol, ssl.TLSVersion.TLSv1_3)
    allowed = [version for version in versions if version <= highest]
    if not allowed:
        raise ConfigError(f"ssl.protocol {protocol} allows none of ssl.enabled.protocols {text}")
    return allowed


def _with_suites(context: ssl.SSLContext, names: list[str], versions: list[ssl.TLSVersion]) -> list[ssl.TLSVersion]:
    """Sets the suites of TLS 1.2 and gives the versions that have one. Those of TLS 1.3 can be had all or none."""
    newer = _SUITES_1_3 & set(names)
    if newer and newer != _SUITES_1_3:
        raise ConfigError(
            "ssl.cipher.suites can't choose among the suites of TLS 1.3: name none of them, or all of "
            f"{', '.join(sorted(_SUITES_1_3))}"
        )
    older = [name for name in names if name not in (*_SUITES_1_3, _NO_SUITE)]
    if older:
        _set_suites(context, older)
    usable = [version for version in versions if (newer if version is ssl.TLSVersion.TLSv1_3 else older)]
    if not usable:
        raise ConfigError("ssl.cipher.suites has no suite for ssl.enabled.protocols")
    return usable


def _set_suites(context: ssl.SSLContext, names: list[str]) -> None:
    """ConfigError for a name that OpenSSL would pass over, or take for something else than one suite that protects."""
    try:
        context.set_ciphers(":".join(map(openssl_suite, names)))
    except ssl.SSLError:
        raise ConfigError(
            f"Invalid value {','.join(names)} for configuration ssl.cipher.suites: none is available"
        ) from None
    available = {cipher["name"]: cipher for cipher in context.get_ciphers()}
    for name in names:
        found = available.get(openssl_suite(name))
        if found is None:
            raise ConfigError(f"Invalid value {name} for configuration ssl.cipher.suites: it is not available")
        if not found["strength_bits"] or found["auth"] == "auth-null":
            raise ConfigError(f"Invalid value {name} for configuration ssl.cipher.suites: it protects nothing")


def openssl_suite(name: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2: TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 is ECDHE-RSA-AES256-GCM-SHA384."""
    exchange, found, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not found:
        return name
    cipher = re.sub(r"^AES_(128|256)_", r"AES\1_", cipher).replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    prefix = "" if exchange == "RSA" else f"{exchange}_"
    return f"{prefix}{cipher}".replace("_", "-")


def _load_key(context: ssl.SSLContext, material: KeyMaterial) -> None:
    """The ssl module reads keys from files only. This one is in memory and has no name."""
    descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, material.chain + material.key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        raise ConfigError(f"private key and certificate chain can't be used: {error.reason}") from None
    finally:
        os.close(descriptor)


def _load_revocations(context: ssl.SSLContext, settings: Mapping[str, str]) -> None:
    """The last certificate of a chain must not be on its authority's list; without a current list it is refused."""
    location = settings.get(CRL_KEY)
    if not location:
        return
    try:
        with open(location, "rb") as file:
            data = file.read(_CRL_BYTES_MAX + 1)
        if b"-----BEGIN X509 CRL-----" not in data or b"CERTIFICATE" in data or len(data) > _CRL_BYTES_MAX:
            raise ConfigError(f"{CRL_KEY}: {location} is not a file with revocation lists in PEM, and nothing else")
        context.load_verify_locations(location)
    except OSError as error:
        raise ConfigError(f"{CRL_KEY}: {location} can't be used: {error.strerror or error}") from None
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    # A resumed session is not verified again, so it would outlive the list that allowed it.
    context.options |= ssl.OP_NO_TICKET
    if context.protocol is ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0


def _load_trusted(context: ssl.SSLContext, settings: Mapping[str, str], purpose: ssl.Purpose) -> None:
    _load_revocations(context, settings)
    trusted = trusted_certificates(settings)
    if trusted is None:
        context.load_default_certs(purpose)
        return
    try:
        context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        raise ConfigError(f"the trust store can't be used: {error.reason}") from None
