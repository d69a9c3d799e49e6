"""The audit log of a broker: where it lies, and the refusals that the authorizer tells it."""

from contextlib import ExitStack
from pathlib import Path

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.security.audit_log import AuditLog
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer, Requester
from odradek.model.acls import AclOperation, ResourceType

_NAME_MAX = 249


def start_audit_log(
    config: BrokerConfig, clock: Clock, authorizer: AclAuthorizer | None, started: ExitStack
) -> AuditLog | None:
    """Return None without an authorizer and without `odradek.audit.dir`: clients have no names there."""
    named = config.odradek_audit_dir
    if named is None and authorizer is None:
        return None
    audit = AuditLog(Path(named or config.log_dirs[0]), config.odradek_audit_max_bytes, clock)
    audit.start()
    started.callback(audit.stop)

    def denied(requester: Requester, operation: AclOperation, kind: ResourceType, name: str) -> None:
        audit.record(
            {
                "event": "denied",
                "principal": str(requester.principal),
                "host": requester.host,
                "request": requester.request,
                "operation": operation.shown,
                "resource_type": kind.shown,
                "resource": name[:_NAME_MAX],
            }
        )

    if authorizer is not None:
        authorizer.on_denied = denied
    return audit
