"""Names of the files in a partition's directory, and the entries of its two sparse indexes.

    NNNNNNNNNNNNNNNNNNNN.log        record batches (`odradek.protocol.record_batch`)
    NNNNNNNNNNNNNNNNNNNN.index      8 bytes an entry: offset - base offset (int32), position in the segment (int32)
    NNNNNNNNNNNNNNNNNNNN.timeindex 12 bytes an entry: timestamp (int64), offset - base offset (int32)
    NNNNNNNNNNNNNNNNNNNN.txnindex   aborted transactions (`transaction_index`)
    NNNNNNNNNNNNNNNNNNNN.snapshot   producers as of one offset (`producer_snapshot`)

The number is the segment's base offset, in 20 digits. A further suffix marks files of an unfinished step: `.deleted`,
`.cleaned`, `.swap`.
"""

import re
from struct import Struct
from typing import Final

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

OFFSET_INDEX_ENTRY: Final = Struct(">ii")
"""Relative offset, position in the log file."""

TIME_INDEX_ENTRY: Final = Struct(">qi")
"""Timestamp, relative offset."""

MAX_RELATIVE_OFFSET: Final = 2**31 - 1

_LOG_FILE: Final = re.compile(r"\d{20}" + re.escape(LOG_SUFFIX))


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def is_log_file(name: str) -> bool:
    return _LOG_FILE.fullmatch(name) is not None
