"""Header of every response: v1 for flexible versions, ApiVersions excepted."""

from odradek.protocol.schema import Message, int32


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    correlation_id: int = int32()
