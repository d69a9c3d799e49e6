"""AlterUserScramCredentials (key 51): set and remove users' passwords, salted by the client."""

from odradek.protocol.schema import Request, Response, Struct, array, bytes_, int8, int16, int32, string


class ScramCredentialDeletion(Struct):
    name: str = string()
    mechanism: int = int8()  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512


class ScramCredentialUpsertion(Struct):
    name: str = string()
    mechanism: int = int8()  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: int = int32()
    salt: bytes = bytes_()
    salted_password: bytes = bytes_()


class AlterUserScramCredentialsRequest(Request, key=51, versions="0-0", flexible="0+"):
    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Struct):
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class AlterUserScramCredentialsResponse(Response, key=51, versions="0-0", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
