"""AddOffsetsToTxn (key 25): adds a group to a transaction that will commit its offsets."""

from odradek.protocol.schema import Request, Response, int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, key=25, versions="0-4", flexible="3+"):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Response, key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
