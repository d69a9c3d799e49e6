"""expire_delegation_token."""

from odradek.protocol.schema import Request, Response, bytes_, int16, int32, int64


class ExpireDelegationTokenRequest(Request, key=40, versions="0-2", flexible="2+"):
    hmac: bytes = bytes_()
    expiry_time_period_ms: int = int64()


class ExpireDelegationTokenResponse(Response, key=40, versions="0-2", flexible="2+"):
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
