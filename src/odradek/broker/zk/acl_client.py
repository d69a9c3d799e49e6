"""kazoo's client, with Kafka's rights on each node that it creates (`zookeeper.set.acl`). Used by `session` alone."""

from typing import Any

from kazoo.client import KazooClient, TransactionRequest
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from odradek.broker.zk.znodes.access_rights import ZnodeRights, rights_of

_ACLS = {
    ZnodeRights.OPEN: OPEN_ACL_UNSAFE,
    ZnodeRights.READABLE: [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE],
    ZnodeRights.PRIVATE: CREATOR_ALL_ACL,
}


class AclClient(KazooClient):  # type: ignore[misc]
    def create_async(self, path: str, *args: Any, **kwargs: Any) -> Any:
        """Create a node; missing parents get the same rights."""
        return super().create_async(path, *args, **{**kwargs, "acl": _ACLS[rights_of(path)]})

    def transaction(self) -> TransactionRequest:
        return _AclTransaction(self)


class _AclTransaction(TransactionRequest):  # type: ignore[misc]
    def create(self, path: str, *args: Any, **kwargs: Any) -> None:
        super().create(path, *args, **{**kwargs, "acl": _ACLS[rights_of(path)]})
