"""RenewDelegationToken (key 39): push a token's expiry back."""

from odradek.protocol.schema import Request, Response, bytes_, int16, int32, int64


class RenewDelegationTokenRequest(Request, key=39, versions="0-2", flexible="2+"):
    hmac: bytes = bytes_()  # proves possession of the token
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Response, key=39, versions="0-2", flexible="2+"):
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
