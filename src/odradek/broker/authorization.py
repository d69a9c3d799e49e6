"""The authorizer of a broker, made from its configuration and fed from ZooKeeper before any listener opens."""

from collections.abc import Callable
from contextlib import ExitStack

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.logs import get_logger
from odradek.broker.admin.acl_admin import AclAdmin
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.principal import KafkaPrincipal
from odradek.broker.zk.change_follower import refresh_on_changes
from odradek.broker.zk.known_acls import KnownAcls
from odradek.broker.zk.session import SessionEvent, ZkSession
from odradek.broker.zk.znodes.acls import AclChanges

log = get_logger(__name__)


def start_authorizer(
    config: BrokerConfig,
    session: ZkSession,
    clock: Clock,
    on_znode: list[Callable[[str], None]],
    on_session_event: list[Callable[[SessionEvent], None]],
    started: ExitStack,
) -> tuple[AclAuthorizer, AclAdmin] | tuple[None, None]:
    """Return None without `authorizer.class.name`: every client may do everything."""
    if not str(config.get("authorizer.class.name")).strip():
        return None, None
    super_users = [
        KafkaPrincipal.parse(user.strip()) for user in str(config.get("super.users")).split(";") if user.strip()
    ]
    authorizer = AclAuthorizer(
        super_users, allow_everyone_if_no_acl_found=bool(config.get("allow.everyone.if.no.acl.found"))
    )
    known = KnownAcls(session, clock, authorizer.set_acls)
    refresh_on_changes(known.refresh, frozenset(AclChanges.roots.values()), on_znode, on_session_event)
    known.start()
    started.callback(known.stop)
    log.info("authorizer started", acls=authorizer.acl_count, super_users=len(super_users))
    return authorizer, AclAdmin(known)
