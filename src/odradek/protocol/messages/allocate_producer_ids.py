"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids."""

from odradek.protocol.schema import Request, Response, int16, int32, int64


class AllocateProducerIdsRequest(Request, key=67, versions="0-0", flexible="0+"):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)  # of the broker's registration


class AllocateProducerIdsResponse(Response, key=67, versions="0-0", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    producer_id_start: int = int64()  # the first of the block
    producer_id_len: int = int32()
