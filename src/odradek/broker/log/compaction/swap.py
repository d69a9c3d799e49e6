"""Replacement of segments by a compacted one, so that a crash at any point loses nothing.

    NNN.log.cleaned    being written; a start removes it
    NNN.log.swap       complete and on disk; a start puts it in place, unless a `.cleaned` of the same set is there
    NNN.log            in place, once the old ones are out of the way as `.deleted`

and the indexes likewise, in this order: first all from `.cleaned` to `.swap`, the log first; then the old segments'
files to `.deleted`; then all from `.swap` to their names, the log first again, so that a start never takes an index in
place for one of the old segments'. `recovery` reads these names, and so does Kafka.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from odradek.broker.log.files.checkpoint import sync_directory
from odradek.broker.log.files.segment import Segment
from odradek.format.segment_files import CLEANED_SUFFIX, SEGMENT_SUFFIXES, SWAP_SUFFIX, file_name


def put_in_place(directory: Path, old: Sequence[Segment], size: int) -> tuple[Segment, list[Path]]:
    """The new segment of the `.cleaned` files named like the first of the old ones, and the files to remove."""
    base_offset = old[0].base_offset
    _rename(directory, base_offset, CLEANED_SUFFIX, SWAP_SUFFIX)
    sync_directory(directory)  # the old ones must not go before the new one has its name
    gone = [path for segment in old for path in segment.retire()]
    _rename(directory, base_offset, SWAP_SUFFIX, "")
    return Segment(directory, base_offset, size=size, end_offset=old[-1].end_offset), gone


def remove_cleaned(directory: Path, base_offset: int) -> None:
    for suffix in SEGMENT_SUFFIXES:
        (directory / file_name(base_offset, suffix + CLEANED_SUFFIX)).unlink(missing_ok=True)


def _rename(directory: Path, base_offset: int, before: str, after: str) -> None:
    for suffix in SEGMENT_SUFFIXES:
        try:
            os.rename(
                directory / file_name(base_offset, suffix + before), directory / file_name(base_offset, suffix + after)
            )
        except FileNotFoundError:
            if suffix == SEGMENT_SUFFIXES[0]:
                raise  # an index may be missing, the log may not
