"""Delegation token nodes: read, written, removed, and announced to every broker."""

from collections.abc import Iterable

from kazoo.exceptions import NoNodeError

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.security.core.delegation_tokens import DelegationToken
from odradek.broker.zk.stores.access import ZnodeAccess, raise_unless, readable
from odradek.broker.zk.znodes.tokens import TokenChanges, Tokens

TOKEN_BYTES_MAX = 64 << 10
"""Any user may make tokens. A node of more than a megabyte costs the broker its connection with ZooKeeper, again and
again until the request is given up."""


class TokenNodes:
    def __init__(self, access: ZnodeAccess) -> None:
        self._access = access

    def load_tokens(self, token_ids: Iterable[str] | None = None) -> dict[str, DelegationToken | None]:
        """Return tokens by id, of these ids or all; None where there is no token, or an unreadable one."""
        wanted = self._access.children(Tokens.path) if token_ids is None else list(token_ids)
        nodes = self._access.read_all([Tokens.child(token_id) for token_id in wanted])
        return {
            token_id: None if node is None else readable(Tokens.decode, token_id, node[0])
            for token_id, node in zip(wanted, nodes, strict=True)
        }

    def write_token(self, token: DelegationToken) -> None:
        """KafkaError for one whose renewers take too much room."""
        content = Tokens.encode(token)
        if len(content) > TOKEN_BYTES_MAX:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The names of the token's renewers are {len(content)} bytes")
        self._access.put(Tokens.child(token.id), content)
        self._access.create_sequential(TokenChanges.sequence_path, token.id.encode())

    def delete_token(self, token_id: str) -> None:
        outcomes = self._access.pipeline([lambda zk: zk.delete_async(Tokens.child(token_id))])
        raise_unless(NoNodeError, outcomes)
        self._access.create_sequential(TokenChanges.sequence_path, token_id.encode())

    def load_token_changes(self, after: str) -> tuple[list[str], str]:
        """Ids of tokens that changed since that notice, and the newest notice."""
        names = [name for name in self._access.children(TokenChanges.path) if name > after]
        nodes = self._access.read_all([TokenChanges.child(name) for name in names])
        found = (
            readable(TokenChanges.decode, name, node[0])
            for name, node in zip(names, nodes, strict=True)
            if node is not None
        )
        return list(dict.fromkeys(token_id for token_id in found if token_id)), max([after, *names])

    def purge_token_changes(self, now_ms: int) -> None:
        """Remove the notices that every broker has had the time to read."""
        self._access.purge(TokenChanges.path, now_ms, TokenChanges.kept_ms)
