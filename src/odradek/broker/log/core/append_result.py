"""Result of an append to a partition's log."""

from typing import NamedTuple


class AppendResult(NamedTuple):
    """Offsets and times of appended records. For a duplicate: where they were put the first time."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time_ms: int  # -1 when records keep their producer's time
    log_start_offset: int
    is_duplicate: bool = False
