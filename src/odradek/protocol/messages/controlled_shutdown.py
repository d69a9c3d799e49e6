"""ControlledShutdown (key 7): a broker asks the controller to move its leaders away before it stops.

v0 comes with a header that has no client id.
"""

from odradek.protocol.schema import Request, Response, Struct, array, int16, int32, int64, string


class ControlledShutdownRequest(Request, key=7, versions="0-3", flexible="3+"):
    broker_id: int = int32()
    broker_epoch: int = int64("2+", default=-1, ignorable=True)  # of the broker's registration; -1: don't check


class RemainingPartition(Struct):
    topic_name: str = string()
    partition_index: int = int32()


class ControlledShutdownResponse(Response, key=7, versions="0-3", flexible="3+"):
    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)  # those that the broker still leads
