"""DeleteTopics (key 20): topics to be deleted, by name or, since v6, by id."""

from uuid import UUID

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    name: str | None = string(nullable="0+", default=None)  # None: by id
    topic_id: UUID = uuid()


class DeleteTopicsRequest(Request, key=20, versions="0-6", flexible="4+"):
    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")  # names or ids
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32()  # how long the broker may take


class DeletableTopicResult(Struct):
    name: str | None = string(nullable="6+")  # None: an id that is not known
    topic_id: UUID = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Response, key=20, versions="0-6", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)  # how long the client should pause for its quota
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
