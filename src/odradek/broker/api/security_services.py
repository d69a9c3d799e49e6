"""Security of a broker, as handlers use it."""

from odradek.base.value_classes import dataclass
from odradek.broker.admin.acl_admin import AclAdmin
from odradek.broker.admin.token_admin import TokenAdmin
from odradek.broker.security.audit_log import AuditLog
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.credential_store import KnownCredentials


@dataclass(frozen=True, slots=True)
class SecurityServices:
    credentials: KnownCredentials
    authorizer: AclAuthorizer | None = None
    """None: no authorizer is configured, everything is allowed."""
    acls: AclAdmin | None = None
    """None together with `authorizer`."""
    audit: AuditLog | None = None
    tokens: TokenAdmin | None = None
    """None: delegation tokens are not configured."""
