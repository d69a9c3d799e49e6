"""Authorizer, audit log, delegation tokens and secured listeners of a broker, started before any listener opens."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.logs import get_logger
from odradek.base.scheduler import Scheduler
from odradek.broker.admin.acl_admin import AclAdmin
from odradek.broker.admin.token_admin import TokenAdmin
from odradek.broker.api.context import BrokerServices
from odradek.broker.api.security_services import SecurityServices
from odradek.broker.security.audit_log import AuditLog, login_failure
from odradek.broker.security.authentication.listener_security import (
    ListenerSecurity,
    RefusalListener,
    ignore_refusal,
)
from odradek.broker.security.authentication.listener_settings import (
    follow_store_changes,
    secured_listeners,
    start_issuer_keys,
    watch_certificates,
)
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer, Requester
from odradek.broker.security.core.delegation_tokens import TokenLifetimes
from odradek.broker.security.credential_store import KnownCredentials
from odradek.broker.security.known_tokens import KnownTokens, token_secret_key
from odradek.broker.security.principal import KafkaPrincipal
from odradek.broker.zk.change_follower import refresh_on_changes
from odradek.broker.zk.known_acls import KnownAcls
from odradek.broker.zk.session import SessionEvent, ZkSession
from odradek.broker.zk.znodes.acls import AclChanges
from odradek.broker.zk.znodes.tokens import TokenChanges
from odradek.model.acls import AclOperation, ResourceType

log = get_logger(__name__)

_NAME_MAX = 249


def start_tokens(
    config: BrokerConfig,
    session: ZkSession,
    clock: Clock,
    on_znode: list[Callable[[str], None]],
    on_session_event: list[Callable[[SessionEvent], None]],
    started: ExitStack,
) -> TokenAdmin | None:
    """Return None without `delegation.token.secret.key`: there are no tokens then."""
    secret_key = token_secret_key(config)
    if secret_key is None:
        return None
    lifetimes = TokenLifetimes(
        max_ms=config.delegation_token_max_lifetime_ms,
        renewal_ms=config.delegation_token_expiry_time_ms,
    )
    tokens = TokenAdmin(session, clock, KnownTokens(secret_key, clock), lifetimes)
    refresh_on_changes(tokens.refresh, (TokenChanges.path,), on_znode, on_session_event)
    tokens.start()
    started.callback(tokens.stop)
    return tokens


def start_authorizer(
    config: BrokerConfig,
    session: ZkSession,
    clock: Clock,
    on_znode: list[Callable[[str], None]],
    on_session_event: list[Callable[[SessionEvent], None]],
    audit: AuditLog | None,
    started: ExitStack,
) -> tuple[AclAuthorizer, AclAdmin] | tuple[None, None]:
    """Return None without `authorizer.class.name`: every client may do everything."""
    if not _has_authorizer(config):
        return None, None
    assert audit is not None, "an authorizer has an audit log"
    super_users = [KafkaPrincipal.parse(user.strip()) for user in config.super_users.split(";") if user.strip()]
    authorizer = AclAuthorizer(
        super_users,
        allow_everyone_if_no_acl_found=config.allow_everyone_if_no_acl_found,
        on_denied=partial(_record_denial, audit),
    )
    known = KnownAcls(session, clock, authorizer.set_acls)
    refresh_on_changes(known.refresh, frozenset(AclChanges.roots.values()), on_znode, on_session_event)
    known.start()
    started.callback(known.stop)
    log.info("authorizer started", acls=authorizer.acl_count, super_users=len(super_users))
    return authorizer, AclAdmin(known)


def _has_authorizer(config: BrokerConfig) -> bool:
    return bool(config.authorizer_class_name.strip())


def start_audit_log(config: BrokerConfig, clock: Clock, started: ExitStack) -> AuditLog | None:
    """Return None without an authorizer and without `odradek.audit.dir`: clients have no names there."""
    named = config.odradek_audit_dir
    if named is None and not _has_authorizer(config):
        return None
    audit = AuditLog(Path(named or config.log_dirs[0]), config.odradek_audit_max_bytes, clock)
    audit.start()
    started.callback(audit.stop)
    return audit


def _record_denial(
    audit: AuditLog, requester: Requester, operation: AclOperation, kind: ResourceType, name: str
) -> None:
    audit.record_refusal(
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


def start_security(
    config: BrokerConfig,
    session: ZkSession,
    clock: Clock,
    credentials: KnownCredentials,
    on_znode: list[Callable[[str], None]],
    on_session_event: list[Callable[[SessionEvent], None]],
    started: ExitStack,
) -> SecurityServices:
    audit = start_audit_log(config, clock, started)
    authorizer, acls = start_authorizer(config, session, clock, on_znode, on_session_event, audit, started)
    return SecurityServices(
        credentials,
        authorizer,
        acls,
        audit,
        start_tokens(config, session, clock, on_znode, on_session_event, started),
    )


def watched_listeners(
    services: BrokerServices, scheduler: Scheduler, started: ExitStack
) -> dict[str, ListenerSecurity]:
    """Security of the listeners that have any; their certificates are reloaded when the files change."""
    tokens = None if services.security.tokens is None else services.security.tokens.known.identity
    audit = services.security.audit
    on_refused = ignore_refusal if audit is None else _recorded_in(audit)
    listeners = secured_listeners(services.config, services.security.credentials, services.clock, tokens, on_refused)
    watch_certificates(listeners, scheduler, services.metrics)
    start_issuer_keys(listeners, started)
    follow_store_changes(listeners, services.live)
    return listeners


def _recorded_in(audit: AuditLog) -> RefusalListener:
    return lambda listener, host, reason: audit.record_refusal(login_failure(host, listener, reason))
