"""Segment files, batch by batch."""

import re
from pathlib import Path

from odradek.apps.pipeline.segment_source.segment_file import stored_batches
from odradek.protocol.record_batch import HEADER_SIZE, build_batch
from odradek.protocol.records import Record

MEGABYTE = 1 << 20


def resident(path: Path) -> int:
    """Return the bytes of the file in this process's memory."""
    mappings = Path("/proc/self/smaps").read_text()
    found = re.search(rf"{re.escape(str(path))}\n(?:.*\n)*?Rss: +(\d+) kB", mappings)
    assert found is not None
    return int(found[1]) * 1024


def test_a_file_is_never_in_memory_whole(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    batch = build_batch([Record(0, 1, None, b"x" * MEGABYTE)], base_offset=0)
    path.write_bytes(batch * 48)
    most = count = 0
    for stored in stored_batches(path):
        assert stored.problem is None
        assert len(stored.view) > HEADER_SIZE + MEGABYTE
        most, count = max(most, resident(path)), count + 1
    assert count == 48
    assert most < 20 * MEGABYTE
