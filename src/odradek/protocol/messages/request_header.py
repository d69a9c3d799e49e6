"""Header of every request: v0 for ControlledShutdown v0, v1 for the older versions, v2 for flexible ones."""

from odradek.protocol.schema import Message, int16, int32, string


class RequestHeader(Message, versions="0-2", flexible="2+"):
    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string("1+", nullable="1+", ignorable=True, compact=False)  # length as in v1
