"""Apache Kafka's own DumpLogSegments over files that we wrote: batches, records, both indexes, snapshots."""

import re
import subprocess
from pathlib import Path

from log_building import RULES, START_MS, TP, batch

from class_archive import class_path
from java_program import SHORT_LIVED
from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.local.java import find_java
from odradek.protocol.compression import Codec

CONFIG = LogConfig(segment_bytes=9_000, index_interval_bytes=500)


def dump(kafka_lib: Path, files: list[Path], *options: str) -> str:
    command = [
        str(find_java()), "-Xmx128m", *SHORT_LIVED, *class_path(kafka_lib),
        "kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files)), *options,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout


def write_log(directory: Path) -> PartitionLog:
    log = PartitionLog.open(directory, TP, CONFIG)
    for number in range(200):
        records = batch(
            *(f"value {number}.{part}" for part in range(1 + number % 5)),
            timestamp=START_MS + number,
            compression=Codec(number % 5),
            producer_id=7,
            producer_epoch=0,
            base_sequence=sum(1 + before % 5 for before in range(number)),
        )
        log.append_as_leader(records, leader_epoch=number // 50, rules=RULES)
    return log


def test_dump_log_segments_agrees(tmp_path: Path, kafka_lib: Path) -> None:
    log = write_log(tmp_path / str(TP))
    log.close()
    assert len(log.segments) >= 3
    files = [segment.path for segment in log.segments]
    text = dump(kafka_lib, files, "--print-data-log", "--deep-iteration")
    assert len(re.findall(r"baseOffset: ", text)) == 200
    assert "isvalid: false" not in text
    payloads = re.findall(r"payload: (\S+ \S+)$", text, re.MULTILINE)
    assert payloads == [f"value {number}.{part}" for number in range(200) for part in range(1 + number % 5)]

    indexes = [path for segment in log.segments for path in (segment.index.path, segment.time_index.path)]
    assert all(path.stat().st_size for path in indexes)
    for option in ("--verify-index-only", "--index-sanity-check"):
        text = dump(kafka_lib, indexes, option)
        assert "mismatch" not in text.lower()
        assert "ound timestamp" not in text
        assert "Exception" not in text

    snapshots = sorted((tmp_path / str(TP)).glob("*.snapshot"))
    text = dump(kafka_lib, snapshots[-1:])
    assert "producerId: 7 producerEpoch: 0" in text
    assert f"lastSequence: {log.log_end_offset - 1}" in text
