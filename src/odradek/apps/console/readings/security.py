"""Users, ACLs and certificates of the brokers, as far as the user may see them."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ssl import SSLSocket, cert_time_to_seconds

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.acl_admin import EVERY_ENTRY, EVERY_PATTERN, describe_acls
from odradek.client.cluster_client import ClusterClient
from odradek.client.scram_admin import describe_credentials
from odradek.model.acls import AclBinding, AclFilter

_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class UsersState:
    users: Mapping[str, Mapping[str, int]]
    """Mechanisms of each user, with their iterations."""


def read_users(client: ClusterClient, before: UsersState | None) -> UsersState:
    return UsersState(describe_credentials(client))


@dataclass(frozen=True, slots=True)
class AclsState:
    acls: tuple[AclBinding, ...]
    has_authorizer: bool = True
    """True if the cluster has an authorizer."""


def read_acls(client: ClusterClient, before: AclsState | None) -> AclsState:
    try:
        found = describe_acls(client, AclFilter(EVERY_PATTERN, EVERY_ENTRY))
    except KafkaError as error:
        if error.code is ErrorCode.SECURITY_DISABLED:
            return AclsState((), has_authorizer=False)
        raise
    return AclsState(tuple(sorted(found, key=_order)))


def _order(acl: AclBinding) -> tuple[object, ...]:
    return (acl.pattern.type, acl.pattern.name, acl.pattern.pattern, acl.entry.principal, acl.entry.operation)


def read_certificates(client: ClusterClient, before: Mapping[int, datetime] | None) -> Mapping[int, datetime]:
    """Return the end of each broker's certificate, as it shows it to its clients; nothing without TLS."""
    security = client.security
    if security is None or not security.is_tls:
        return {}
    ends: dict[int, datetime] = {}
    for broker, (host, port) in client.brokers().items():
        try:
            with socket.create_connection((host, port), _TIMEOUT_S) as plain:
                secured = security.wrap(plain, host)
                if isinstance(secured, SSLSocket):
                    with secured:
                        ends[broker] = _end(secured)
        except OSError:
            continue  # other parts of the page report brokers without an answer
    return ends


def _end(secured: SSLSocket) -> datetime:
    certificate = secured.getpeercert() or {}
    return datetime.fromtimestamp(cert_time_to_seconds(str(certificate["notAfter"])), UTC)
