"""Access control: identities of a connection, lists of permissions, and whether one allows the other.

Schemes: `world` (anyone), `auth` (all identities of the client, replaced when it is stored), `digest` (user and the
SHA-1 of user and password) and `ip`. Any other scheme is refused, as by a ZooKeeper that has no provider for it.
"""

import base64
import hashlib
import ipaddress
from collections.abc import Iterable, Sequence

from odradek.base.value_classes import dataclass
from odradek.local.coordination.core import jute
from odradek.local.coordination.core.jute import Reader
from odradek.local.coordination.core.protocol import Code, KeeperError, Permission

_ACL_BYTES_MIN = 12


@dataclass(frozen=True, slots=True)
class Identity:
    scheme: str
    id: str


@dataclass(frozen=True, slots=True)
class Acl:
    perms: int
    identity: Identity


Acls = tuple[Acl, ...]

ANYONE = Identity("world", "anyone")
OPEN: Acls = (Acl(Permission.ALL, ANYONE),)
READ_ONLY: Acls = (Acl(Permission.READ, ANYONE),)


def read_acls(reader: Reader) -> Acls:
    def one() -> Acl:
        return Acl(reader.int32(), Identity(reader.string(), reader.string_or_null() or ""))

    return tuple(reader.vector(one, _ACL_BYTES_MIN) or ())


def written(acls: Acls) -> bytes:
    return jute.vector(
        jute.int32(acl.perms) + jute.string(acl.identity.scheme) + jute.string(acl.identity.id) for acl in acls
    )


def digest_identity(credentials: bytes) -> Identity:
    """Return the identity of `user:password`."""
    user = credentials.split(b":", 1)[0].decode(errors="replace")
    hashed = base64.b64encode(hashlib.sha1(credentials, usedforsecurity=False).digest()).decode()
    return Identity("digest", f"{user}:{hashed}")


def fixed_up(acls: Acls, identities: Iterable[Identity]) -> Acls:
    """The list as it is stored; raises INVALID_ACL for an empty one and for what can't be checked."""
    fixed: list[Acl] = []
    for acl in dict.fromkeys(acls):
        if acl.identity.scheme == "auth":
            authenticated = [identity for identity in identities if identity.scheme == "digest"]
            if not authenticated:
                raise KeeperError(Code.INVALID_ACL)
            fixed += [Acl(acl.perms, identity) for identity in authenticated]
        elif acl.identity == ANYONE or _is_valid(acl.identity):
            fixed.append(acl)
        else:
            raise KeeperError(Code.INVALID_ACL)
    if not fixed:
        raise KeeperError(Code.INVALID_ACL)
    return tuple(fixed)


def check(acls: Acls, wanted: int, identities: Sequence[Identity]) -> None:
    """Raise NO_AUTH unless one of the wanted permissions is given to one of the identities."""
    if not allows(acls, wanted, identities):
        raise KeeperError(Code.NO_AUTH)


def allows(acls: Acls, wanted: int, identities: Sequence[Identity]) -> bool:
    if acls is OPEN or not acls:
        return True
    for acl in acls:
        if acl.perms & wanted:
            if acl.identity == ANYONE:
                return True
            if any(_matches(identity, acl.identity) for identity in identities):
                return True
    return False


def without_secrets(acls: Acls) -> Acls:
    """Hide digests, for a client that may read a node and not administer it."""
    return tuple(
        Acl(acl.perms, Identity("digest", acl.identity.id.partition(":")[0] + ":x"))
        if acl.identity.scheme == "digest"
        else acl
        for acl in acls
    )


def _matches(identity: Identity, expression: Identity) -> bool:
    if identity.scheme != expression.scheme:
        return False
    if identity.scheme == "ip":
        network = _network(expression.id)
        try:
            return network is not None and ipaddress.ip_address(identity.id) in network
        except ValueError:
            return False
    return identity.id == expression.id


def _is_valid(identity: Identity) -> bool:
    if identity.scheme == "digest":
        return len(identity.id.rstrip(":").split(":")) == 2
    return identity.scheme == "ip" and _network(identity.id) is not None


def _network(expression: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    _, slash, bits = expression.partition("/")
    if slash and not bits.isdecimal():
        return None
    try:
        return ipaddress.ip_network(expression, strict=False)
    except ValueError:
        return None
