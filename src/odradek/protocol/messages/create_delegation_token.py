"""CreateDelegationToken (key 38): creates a token with which a client authenticates as the token's owner.

v3 on behalf of another owner.
"""

from odradek.protocol.schema import Request, Response, Struct, array, bytes_, int16, int32, int64, string


class CreatableRenewers(Struct):
    principal_type: str = string()
    principal_name: str = string()


class CreateDelegationTokenRequest(Request, key=38, versions="0-3", flexible="2+"):
    owner_principal_type: str | None = string("3+", nullable="3+")  # None: the requester
    owner_principal_name: str | None = string("3+", nullable="3+")  # None: the requester
    renewers: list[CreatableRenewers] = array(CreatableRenewers)  # principals besides the owner that may renew it
    max_lifetime_ms: int = int64()  # -1: as the broker is configured


class CreateDelegationTokenResponse(Response, key=38, versions="0-3", flexible="2+"):
    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()  # no renewal goes beyond it
    token_id: str = string()
    hmac: bytes = bytes_()  # proves possession of the token
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
