"""Delegation tokens, one node per token, and the notices by which brokers learn of a change. No node holds a secret."""

from typing import Any

from odradek.broker.quotas.core.quota_table import desanitized, sanitized
from odradek.broker.security.core.delegation_tokens import DelegationToken
from odradek.broker.security.principal import KafkaPrincipal
from odradek.broker.zk.json_form import scala_map_order, to_json
from odradek.broker.zk.znodes.reading import CorruptZnode, decoded, integer, text


class Tokens:
    path = "/delegation_token/tokens"

    @classmethod
    def child(cls, token_id: str) -> str:
        return f"{cls.path}/{token_id}"

    @staticmethod
    def encode(token: DelegationToken) -> bytes:
        fields: dict[str, Any] = {
            "version": 3,
            "owner": sanitized(str(token.owner)),
            "tokenRequester": sanitized(str(token.requester)),
            "renewers": [sanitized(str(renewer)) for renewer in token.renewers],
            "issueTimestamp": token.issue_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expiry_ms,
            "tokenId": token.id,
        }
        return to_json({name: fields[name] for name in scala_map_order(fields)})

    @classmethod
    def decode(cls, token_id: str, content: bytes | None) -> DelegationToken:
        def read(fields: dict[str, Any]) -> DelegationToken:
            version = integer(fields["version"])
            if not 1 <= version <= 3:
                raise ValueError(f"unknown version {version}")
            owner = _principal(fields["owner"])
            return DelegationToken(
                text(fields["tokenId"]),
                owner,
                _principal(fields["tokenRequester"]) if version >= 3 else owner,
                tuple(_principal(renewer) for renewer in fields["renewers"]),
                integer(fields["issueTimestamp"]),
                integer(fields["maxTimestamp"]),
                integer(fields["expiryTimestamp"]),
            )

        return decoded(cls.child(token_id), content, read)


def _principal(value: Any) -> KafkaPrincipal:
    return KafkaPrincipal.parse(desanitized(text(value)))


class TokenChanges:
    """Sequential nodes whose content is the id of a token."""

    path = "/delegation_token/token_changes"
    sequence_path = f"{path}/token_change_"
    kept_ms = 15 * 60 * 1000

    @classmethod
    def child(cls, name: str) -> str:
        return f"{cls.path}/{name}"

    @classmethod
    def decode(cls, name: str, content: bytes | None) -> str:
        try:
            return (content or b"").decode()
        except ValueError as error:
            raise CorruptZnode(cls.child(name), content, "not a token id") from error


TOKEN_ROOTS = (Tokens.path, TokenChanges.path)
"""Nodes that are there, empty, from the first start with delegation tokens on."""
