"""Rights to the root of a cluster's own coordination server.

Brokers with `zookeeper.set.acl` own each node that they create, but the root was there before them: any process of the
machine could remove `/controller` from it, or put another one there.
"""

from kazoo.client import KazooClient
from kazoo.security import CREATOR_ALL_ACL, READ_ACL_UNSAFE

_TIMEOUT_S = 30.0


def give_root_to_brokers(connect: str, digest: str) -> None:
    """Let only brokers with this digest (USER:PASSWORD) create and remove nodes below the root; everybody may list
    them."""
    client = KazooClient(connect, auth_data=[("digest", digest)])
    client.start(_TIMEOUT_S)
    try:
        client.set_acls("/", [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE])
    finally:
        client.stop()
        client.close()
