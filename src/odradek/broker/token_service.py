"""Delegation tokens of a broker, made from its configuration and fed from ZooKeeper before any listener opens."""

from collections.abc import Callable
from contextlib import ExitStack

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.broker.admin.token_admin import TokenAdmin
from odradek.broker.security.core.delegation_tokens import TokenLifetimes
from odradek.broker.security.known_tokens import KnownTokens
from odradek.broker.zk.change_follower import refresh_on_changes
from odradek.broker.zk.session import SessionEvent, ZkSession
from odradek.broker.zk.znodes.tokens import TokenChanges


def start_tokens(
    config: BrokerConfig,
    session: ZkSession,
    clock: Clock,
    on_znode: list[Callable[[str], None]],
    on_session_event: list[Callable[[SessionEvent], None]],
    started: ExitStack,
) -> TokenAdmin | None:
    """Return None without `delegation.token.secret.key`: there are no tokens then."""
    secret_key = config.get("delegation.token.secret.key") or config.get("delegation.token.master.key")
    if not secret_key:
        return None
    lifetimes = TokenLifetimes(
        max_ms=config.integer("delegation.token.max.lifetime.ms"),
        renewal_ms=config.integer("delegation.token.expiry.time.ms"),
    )
    tokens = TokenAdmin(session, clock, KnownTokens(str(secret_key).encode(), clock), lifetimes)
    refresh_on_changes(tokens.refresh, (TokenChanges.path,), on_znode, on_session_event)
    tokens.start()
    started.callback(tokens.stop)
    return tokens
