"""InitProducerId (key 22): an id and epoch for an idempotent or transactional producer.

v3 lets a producer keep its id and raise its epoch.
"""

from odradek.protocol.schema import Request, Response, int16, int32, int64, string


class InitProducerIdRequest(Request, key=22, versions="0-5", flexible="2+"):
    transactional_id: str | None = string(nullable="0+")  # None: idempotent only
    transaction_timeout_ms: int = int32()  # after which the coordinator aborts it
    producer_id: int = int64("3+", default=-1)  # -1: a new one
    producer_epoch: int = int16("3+", default=-1)  # -1: a new one


class InitProducerIdResponse(Response, key=22, versions="0-5", flexible="2+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    producer_id: int = int64(default=-1)  # -1: none
    producer_epoch: int = int16()
