"""DescribeUserScramCredentials (key 50): which mechanisms users can log in with; never the secrets."""

from odradek.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class UserName(Struct):
    name: str = string()


class DescribeUserScramCredentialsRequest(Request, key=50, versions="0-0", flexible="0+"):
    users: list[UserName] | None = array(UserName, nullable="0+")  # None: all


class CredentialInfo(Struct):
    mechanism: int = int8()  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: int = int32()


class DescribeUserScramCredentialsResult(Struct):
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


class DescribeUserScramCredentialsResponse(Response, key=50, versions="0-0", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
