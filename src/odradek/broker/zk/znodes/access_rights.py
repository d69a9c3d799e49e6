"""Rights to each znode where `zookeeper.set.acl` is set: those of Kafka, so that brokers of both kinds agree.

The creator may do everything, others may read; passwords and tokens only the creator reads, and the tree of the oldest
consumers stays open, because its clients write there themselves. Pure.
"""

from enum import Enum

SENSITIVE_ROOTS = ("/config/users", "/config/brokers", "/delegation_token/tokens")
_OPEN = "/consumers"


class ZnodeRights(Enum):
    OPEN = "every client of ZooKeeper may do everything"
    READABLE = "the creator may do everything, others may read"
    PRIVATE = "the creator may do everything, others nothing"


def rights_of(path: str) -> ZnodeRights:
    if path == _OPEN:
        return ZnodeRights.OPEN
    return ZnodeRights.PRIVATE if path.startswith(SENSITIVE_ROOTS) else ZnodeRights.READABLE
