"""Kerberos by the machine's own library: credentials of a broker or a client, and security contexts between them.

The package `gssapi` is the extra `[kerberos]`. Realm and key distribution centres are those of krb5.conf (KRB5_CONFIG).
One mechanism is taken, Kerberos 5: neither SPNEGO, which would choose another, nor anonymous principals.
"""

import itertools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from odradek.base.errors import ConfigError
from odradek.security.kerberos_keys import SERVICE_KEY
from odradek.security.kerberos_names import KerberosName

NO_LAYER = 1
"""The only quality of protection that Kafka has: authentication, and no security layer after it."""
ROUNDS_MAX = 4
"""Tokens of one side; Kerberos needs one or two."""
_cache_numbers = itertools.count(1)


class KerberosError(Exception):
    """A token, a ticket or a key that can't be used. The text is for the log of this side."""


class SecurityContext(Protocol):
    """One side of an exchange."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def peer(self) -> str:
        """Principal of the other side, once it is complete."""

    def step(self, token: bytes) -> bytes:
        """Take a token of the other side and return one for it, which may be empty. KerberosError ends the exchange."""

    def wrap(self, message: bytes) -> bytes: ...

    def unwrap(self, message: bytes) -> bytes: ...


def kerberos_library() -> ModuleType:
    """ConfigError where the extra isn't installed."""
    try:
        import gssapi
    except ImportError:
        raise ConfigError(
            "GSSAPI needs Kerberos, which is not installed: pip install 'odradek[kerberos]' (with libkrb5-dev and a C "
            "compiler), or choose another mechanism"
        ) from None
    module: ModuleType = gssapi
    return module


def service_name(options: Mapping[str, str], configured: str | None) -> str:
    """Kerberos name of brokers, from the login module or the setting. ConfigError without one, or with two."""
    named = options.get("serviceName")
    if named and configured and named != configured:
        raise ConfigError(f"serviceName of sasl.jaas.config is {named}, and {SERVICE_KEY} is {configured}")
    if not (named or configured):
        raise ConfigError(f"GSSAPI needs {SERVICE_KEY}")
    return str(named or configured)


class BrokerCredentials:
    """Key of a broker, from the keytab of its login module; the library reads the file for each exchange."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Raise ConfigError that names the missing setting, or the fault of the key."""
        self._gssapi = kerberos_library()
        if not _is_true(options, "useKeyTab") or not _is_true(options, "storeKey"):
            raise ConfigError("Krb5LoginModule of a broker needs useKeyTab=true and storeKey=true")
        keytab, principal = _keytab(options), options.get("principal", "")
        try:
            has_host = KerberosName.parse(principal).host
        except ValueError as error:
            raise ConfigError(f"principal of Krb5LoginModule: {error}") from None
        if not has_host:
            raise ConfigError(f"principal of Krb5LoginModule is {principal!r}, expected SERVICE/HOST@REALM")
        self._credentials = _acquired(self._gssapi, principal, "accept", {"keytab": f"FILE:{keytab}"})

    @property
    def default_realm(self) -> str:
        """Realm of names without one; empty where krb5.conf has none, as in Kafka."""
        gssapi = self._gssapi
        try:
            name = gssapi.Name("x", gssapi.NameType.kerberos_principal).canonicalize(gssapi.MechType.kerberos)
        except gssapi.exceptions.GSSError:
            return ""
        return str(name).partition("@")[2]

    def accept(self) -> SecurityContext:
        return _Context(self._gssapi, self._gssapi.SecurityContext(creds=self._credentials, usage="accept"))


class ClientCredentials:
    """Tickets of a client: from a keytab, by which the library gets new ones in time, or from a ticket cache."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Raise ConfigError that names the missing setting."""
        self._gssapi = kerberos_library()
        self._principal = options.get("principal") or None
        if _is_true(options, "useKeyTab"):
            if self._principal is None:
                raise ConfigError("Krb5LoginModule with useKeyTab=true needs principal")
            cache = f"MEMORY:odradek-{os.getpid()}-{next(_cache_numbers)}"
            self._store = {"client_keytab": f"FILE:{_keytab(options)}", "ccache": cache}
        elif _is_true(options, "useTicketCache"):
            self._store = {"ccache": options["ticketCache"]} if options.get("ticketCache") else {}
        else:
            raise ConfigError(
                "Krb5LoginModule needs useKeyTab=true with keyTab and principal, or useTicketCache=true: a password "
                "can't be entered"
            )

    def initiate(self, service: str, host: str) -> SecurityContext:
        """KerberosError without a ticket."""
        gssapi = self._gssapi
        try:
            credentials = _acquired(gssapi, self._principal, "initiate", self._store)
        except ConfigError as error:
            raise KerberosError(str(error)) from None
        flags = gssapi.RequirementFlag
        try:
            context = gssapi.SecurityContext(
                name=gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service),
                creds=credentials,
                usage="initiate",
                mech=gssapi.MechType.kerberos,
                flags=[flags.mutual_authentication, flags.integrity, flags.out_of_sequence_detection],
            )
        except gssapi.exceptions.GSSError as error:
            raise KerberosError(_error_text(error)) from None
        return _Context(gssapi, context)


class _Context:
    def __init__(self, gssapi: ModuleType, context: Any) -> None:
        self._gssapi = gssapi
        self._context = context
        context.__DEFER_STEP_ERRORS__ = False  # a refused token is an error of this step, not of the next call

    @property
    def is_complete(self) -> bool:
        return bool(self._context.complete)

    @property
    def peer(self) -> str:
        context, flags = self._context, self._gssapi.RequirementFlag
        if context.mech != self._gssapi.MechType.kerberos or flags.anonymity in context.actual_flags:
            raise KerberosError("another mechanism than Kerberos, or an anonymous principal")
        name = context.initiator_name if context.usage == "accept" else context.target_name
        return str(name)

    def step(self, token: bytes) -> bytes:
        try:
            return self._context.step(token or None) or b""
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(_error_text(error)) from None

    def wrap(self, message: bytes) -> bytes:
        try:
            return bytes(self._context.wrap(message, False).message)
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(_error_text(error)) from None

    def unwrap(self, message: bytes) -> bytes:
        try:
            return bytes(self._context.unwrap(message).message)
        except self._gssapi.exceptions.GSSError as error:
            raise KerberosError(_error_text(error)) from None


def log_in(context: SecurityContext, exchange: Callable[[bytes], bytes]) -> None:
    """Client's side of RFC 4752: tokens until both sides know each other, then the choice of no security layer.

    `exchange` sends a token to the broker and gives its answer."""
    answer = exchange(context.step(b""))
    rounds = itertools.count(1)
    while not context.is_complete:
        if next(rounds) > ROUNDS_MAX:
            raise KerberosError("the exchange does not come to an end")
        answer = exchange(context.step(answer))
    offer = context.unwrap(answer)
    if len(offer) != 4 or not offer[0] & NO_LAYER:
        raise KerberosError("the broker asks for a security layer")
    exchange(context.wrap(bytes([NO_LAYER, 0, 0, 0])))


def _acquired(gssapi: ModuleType, principal: str | None, usage: str, store: Mapping[str, str]) -> Any:
    name = None if principal is None else gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    try:
        return gssapi.Credentials(name=name, usage=usage, mechs=[gssapi.MechType.kerberos], store=dict(store) or None)
    except gssapi.exceptions.GSSError as error:
        holder = principal or "the ticket cache"
        raise ConfigError(f"no Kerberos credentials for {holder}: {_error_text(error)}") from None


def _keytab(options: Mapping[str, str]) -> str:
    path = options.get("keyTab", "").removeprefix("FILE:")
    if not path:
        raise ConfigError("Krb5LoginModule with useKeyTab=true needs keyTab")
    try:
        with Path(path).open("rb"):
            return path
    except OSError as error:
        raise ConfigError(f"keyTab {path} can't be read: {error.strerror}") from None


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").strip().lower() == "true"


def _error_text(error: Exception) -> str:
    """The library's text in one line."""
    return " ".join(str(error).split())[:300]
