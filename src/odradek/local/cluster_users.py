"""Users of a secured local cluster, made through one of its brokers: see `cluster_security`."""

from collections.abc import Mapping

from odradek.client.acl_admin import create_acls
from odradek.client.client_security import ClientSecurity
from odradek.client.cluster_client import ClusterClient
from odradek.client.scram_admin import NewPassword, alter_credentials
from odradek.local.cluster_security import MECHANISM
from odradek.model.acls import (
    AclBinding,
    AclEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)

_ITERATIONS = 8192


def create_users(users: Mapping[str, str], application: str, bootstrap: str, security: ClientSecurity) -> None:
    """Create `users` with their passwords, and the rights of `application`. What exists stays."""
    with ClusterClient(bootstrap, security=security) as client:

        def create() -> None:
            for user, password in users.items():
                alter_credentials(client, user, [NewPassword(MECHANISM, password, _ITERATIONS)])
            create_acls(client, _application_acls(application))

        client.retrying(create)  # lost connections included: the brokers have just started


def _application_acls(application: str) -> list[AclBinding]:
    """Return rights to all names that begin with the application's, and to nothing else."""
    entry = AclEntry(f"User:{application}", "*", AclOperation.ALL, PermissionType.ALLOW)
    named = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    return [AclBinding(ResourcePattern(kind, application, PatternType.PREFIXED), entry) for kind in named]
