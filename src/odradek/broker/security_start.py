"""Authorizer, audit log and delegation tokens of a broker, started before any listener opens."""

from collections.abc import Callable
from contextlib import ExitStack

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.api.security_services import SecurityServices
from odradek.broker.auditing import start_audit_log
from odradek.broker.authorization import start_authorizer
from odradek.broker.security.credential_store import KnownCredentials
from odradek.broker.token_service import start_tokens
from odradek.broker.zk.session import SessionEvent, ZkSession


def start_security(
    config: BrokerConfig,
    session: ZkSession,
    clock: Clock,
    credentials: KnownCredentials,
    on_znode: list[Callable[[str], None]],
    on_session_event: list[Callable[[SessionEvent], None]],
    started: ExitStack,
) -> SecurityServices:
    authorizer, acls = start_authorizer(config, session, clock, on_znode, on_session_event, started)
    return SecurityServices(
        credentials,
        authorizer,
        acls,
        start_audit_log(config, clock, authorizer, started),
        start_tokens(config, session, clock, on_znode, on_session_event, started),
    )
