"""Place of a broker's journal, and its entries about log directories that fail."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.scheduler import Scheduler
from odradek.broker.log.directories.log_dirs import LogDirs
from odradek.broker.recorder.journals import find_journals, read_journals
from odradek.broker.recording import recording_directory_failures, start_recorder


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    return [tmp_path / "disk-a", tmp_path / "disk-b"]


@contextmanager
def started(disks: list[Path], **settings: str) -> Iterator[LogDirs]:
    """A broker as far as its directories and its recorder."""
    properties = {"log.dirs": ",".join(map(str, disks)), "zookeeper.connect": "127.0.0.1:2181"}
    config = BrokerConfig.from_properties(properties | {k.replace("_", "."): v for k, v in settings.items()})
    logs = LogDirs(disks, config, Scheduler(SYSTEM_CLOCK), SYSTEM_CLOCK, lambda why: None)
    with ExitStack() as stack:
        stack.callback(logs.unlock)
        logs.lock()
        records = start_recorder(1, config, logs, SYSTEM_CLOCK, stack)
        logs.table.on_offline.append(recording_directory_failures(records))
        yield logs


def told(*places: Path) -> list[tuple[str, str | None]]:
    return [(entry.what, entry.directory) for entry in read_journals(*places)]


def fail(logs: LogDirs, disk: Path) -> None:
    """As a broker finds out: a checkpoint can't be written."""
    shutil.rmtree(disk)
    logs.table.checkpoint_high_watermarks({})


def test_a_failed_directory_is_told_in_another(disks: list[Path]) -> None:
    with started(disks) as logs:
        fail(logs, disks[0])
    assert ("LogDirFailed", str(disks[0])) in told(disks[1])
    assert not disks[0].exists()


def test_the_first_of_the_directories_that_were_named(disks: list[Path], tmp_path: Path) -> None:
    """A journal of its own place is left alone by the failure of a log directory."""
    journals = [tmp_path / "journal", tmp_path / "reserve"]
    with started(disks, odradek_recorder_dir=",".join(map(str, journals))) as logs:
        fail(logs, disks[0])
    assert told(journals[0]) == [("Started", None), ("LogDirFailed", str(disks[0])), ("Stopped", None)]
    assert (find_journals(disks[1]), journals[1].exists()) == ([], True)


def test_a_journal_below_a_log_directory_goes_with_it(disks: list[Path], tmp_path: Path) -> None:
    disks[0].mkdir()
    journals = [disks[0] / "journal", tmp_path / "reserve"]
    with started(disks, odradek_recorder_dir=",".join(map(str, journals))) as logs:
        fail(logs, disks[0])
    assert ("LogDirFailed", str(disks[0])) in told(journals[1])


def test_a_directory_that_was_offline_from_the_start_is_told(disks: list[Path]) -> None:
    disks[0].write_text("no directory")
    with started(disks):
        pass
    assert told(disks[1]) == [
        ("DirectoryMissing", None),
        ("Started", None),
        ("LogDirFailed", str(disks[0])),
        ("Stopped", None),
    ]
