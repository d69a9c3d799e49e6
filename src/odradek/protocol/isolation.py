"""Upper bound of a reader of a partition, in Fetch and ListOffsets."""

from enum import IntEnum


class IsolationLevel(IntEnum):
    READ_UNCOMMITTED = 0
    """Reads up to the high watermark, records of open and aborted transactions included."""
    READ_COMMITTED = 1
    """Reads up to the last stable offset, without records of aborted transactions."""
