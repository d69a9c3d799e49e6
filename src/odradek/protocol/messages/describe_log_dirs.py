"""DescribeLogDirs (key 35): the replicas in a broker's log directories, and their sizes.

v4 the size of the volume.
"""

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int16, int32, int64, string


class DescribableLogDirTopic(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


class DescribeLogDirsRequest(Request, key=35, versions="0-4", flexible="2+"):
    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")  # None: all


class DescribeLogDirsPartition(Struct):
    partition_index: int = int32()
    partition_size: int = int64()  # in bytes, of all segments
    offset_lag: int = int64()  # behind the high watermark, or, for a move, behind the replica being moved
    is_future_key: bool = bool_()  # a copy that will replace the replica


class DescribeLogDirsTopic(Struct):
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


class DescribeLogDirsResult(Struct):
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64("4+", default=-1, ignorable=True)  # of the volume
    usable_bytes: int = int64("4+", default=-1, ignorable=True)  # of the volume


class DescribeLogDirsResponse(Response, key=35, versions="0-4", flexible="2+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
