"""ExpireDelegationToken (key 40): bring a token's expiry forward, or end it."""

from odradek.protocol.schema import Request, Response, bytes_, int16, int32, int64


class ExpireDelegationTokenRequest(Request, key=40, versions="0-2", flexible="2+"):
    hmac: bytes = bytes_()  # proves possession of the token
    expiry_time_period_ms: int = int64()  # below zero: at once


class ExpireDelegationTokenResponse(Response, key=40, versions="0-2", flexible="2+"):
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
