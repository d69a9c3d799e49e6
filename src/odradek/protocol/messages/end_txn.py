"""EndTxn (key 26): commit or abort a transaction.

v5 raises the epoch at each end, and answers the producer id and epoch to go on with.
"""

from odradek.protocol.schema import Request, Response, bool_, int16, int32, int64, string


class EndTxnRequest(Request, key=26, versions="0-5", flexible="3+"):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = bool_()  # False: aborted


class EndTxnResponse(Response, key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)  # of the next transaction
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
