"""The log directories of a broker: whose they are, where logs go, clean and unclean stops, deletion, a failed disk."""

import errno
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
from log_building import TP, append, contents, values_of
from log_site import Site

from odradek.base.errors import ErrorCode, FatalError, KafkaError
from odradek.broker.log.files.checkpoint import read_offsets, write_offsets
from odradek.format.checkpoints import CLEANER_FILE, HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE
from odradek.model.topology import ZERO_UUID, TopicPartition


def test_a_clean_stop_is_remembered_once(tmp_path: Path) -> None:
    site = Site(tmp_path)
    log = site.create()
    append(log, "a")
    site.dirs.table.checkpoint_high_watermarks({TP: 1})
    site.stop()
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 1\n"

    site = Site(tmp_path)
    assert not (tmp_path / ".kafka_cleanshutdown").exists(), "gone as soon as logs are open"
    found = site.dirs.table.get(TP)
    assert found is not None
    assert (contents(found), found.recovery_point, site.dirs.table.high_watermark(TP)) == ([(0, "a")], 1, 1)
    site.crash()


def test_a_crash_is_recovered(tmp_path: Path) -> None:
    site = Site(tmp_path)
    append(site.create(), "a")
    site.crash()
    site = Site(tmp_path)
    assert contents(site.create()) == [(0, "a")]
    site.crash()


def test_log_starts_are_kept(tmp_path: Path) -> None:
    site = Site(tmp_path)
    log = site.create()
    for value in "abc":
        append(log, value)
    log.maybe_advance_log_start(2)
    site.dirs.table.checkpoint_log_start_offsets()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
    site.crash()
    site = Site(tmp_path)
    assert contents(site.create()) == [(2, "c")]
    site.crash()


def test_a_new_log_goes_where_the_fewest_are(tmp_path: Path) -> None:
    site = Site(tmp_path / "one", tmp_path / "two")
    for number in range(5):
        site.create(TopicPartition("orders", number))
    assert sorted(len(site.dirs.table.logs_in(tmp_path / name)) for name in ("one", "two")) == [2, 3]
    total, usable = site.dirs.table.volume_bytes(tmp_path)
    assert total >= usable > 0
    site.crash()


def test_the_directory_knows_its_broker_and_cluster(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.dirs.remembered_id("cluster-a") is None
    site.dirs.remember_id(3, "cluster-a")
    properties = (tmp_path / "meta.properties").read_text()
    assert {"version=0", "broker.id=3", "cluster.id=cluster-a"} <= set(properties.splitlines())
    assert site.dirs.remembered_id("cluster-a") == 3
    with pytest.raises(FatalError, match=r"cluster-b.*cluster-a"):
        site.dirs.remembered_id("cluster-b")
    site.crash()


def test_a_damaged_meta_properties_is_told_in_words(tmp_path: Path) -> None:
    site = Site(tmp_path)
    (tmp_path / "meta.properties").write_bytes(b"\xff\x00noise")
    with pytest.raises(FatalError, match=r"meta.properties is damaged .*restore it, or delete it"):
        site.dirs.remembered_id("c")
    site.crash()


def test_what_kafka_adds_to_meta_properties_stays(tmp_path: Path) -> None:
    text = "#\n#Mon Jan 01 00:00:00 UTC 2024\ncluster.id=c\nversion=0\ndirectory.id=abc\nbroker.id=1\n"
    (tmp_path / "meta.properties").write_text(text)
    site = Site(tmp_path)
    site.dirs.remember_id(1, "c")
    assert (tmp_path / "meta.properties").read_text() == text
    site.crash()


def test_directories_of_two_brokers_are_refused(tmp_path: Path) -> None:
    site = Site(tmp_path / "one", tmp_path / "two")
    (tmp_path / "one" / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (tmp_path / "two" / "meta.properties").write_text("version=0\nbroker.id=2\n")
    with pytest.raises(FatalError, match="several brokers"):
        site.dirs.remembered_id("c")
    site.crash()


def test_another_process_is_kept_out(tmp_path: Path) -> None:
    site = Site(tmp_path)
    script = f"import fcntl; fcntl.lockf(open({str(tmp_path / '.lock')!r}, 'a+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode != 0
    site.crash()
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


def test_a_held_directory_is_refused_in_words(tmp_path: Path) -> None:
    script = (
        f"import fcntl; f = open({str(tmp_path / '.lock')!r}, 'a+'); fcntl.lockf(f, fcntl.LOCK_EX); "
        "print('held', flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(FatalError, match="in use by another broker"):
            Site(tmp_path)
        holder.communicate(b"\n")


def test_the_topic_id_is_kept_and_must_agree(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.create()
    assert (tmp_path / "orders-0" / "partition.metadata").read_text() == "version: 0\ntopic_id: 1bah1Ws8TX2aVS8Nn28aEQ"
    site.stop()
    site = Site(tmp_path)
    site.create()
    site.create(topic_id=ZERO_UUID)
    with pytest.raises(KafkaError) as refused:
        site.create(topic_id=UUID(int=5))
    assert refused.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
    site.crash()


def test_deletion_is_renaming_then_removal(tmp_path: Path) -> None:
    site = Site(tmp_path)
    append(site.create(), "a")
    site.dirs.delete(TP)
    (renamed,) = tmp_path.glob("orders-0*")
    assert renamed.name.startswith("orders-0.")
    assert renamed.name.endswith("-delete")
    assert site.tasks.waiting[-1][2] == 60_000
    fresh = site.create(topic_id=UUID(int=7))
    assert fresh.log_end_offset == 0
    site.tasks.run()
    assert [path.name for path in tmp_path.glob("orders-0*")] == ["orders-0"]
    site.crash()


def test_an_interrupted_deletion_is_finished_after_a_restart(tmp_path: Path) -> None:
    site = Site(tmp_path)
    append(site.create(), "a")
    site.dirs.delete(TP)
    site.stop()
    site = Site(tmp_path)
    assert site.dirs.table.get(TP) is None
    site.tasks.run()
    assert not list(tmp_path.glob("orders-0*"))
    site.crash()


def test_a_recreated_log_inherits_no_offsets(tmp_path: Path) -> None:
    site = Site(tmp_path)
    log = site.create()
    for value in "abc":
        append(log, value)
    log.maybe_advance_log_start(3)
    site.dirs.table.checkpoint_log_start_offsets()
    site.dirs.table.checkpoint_recovery_points()
    site.dirs.table.checkpoint_high_watermarks({TP: 3})
    site.dirs.delete(TP)
    append(site.create(topic_id=UUID(int=7)), "new")
    assert site.dirs.table.high_watermark(TP) == 0
    site.crash()
    site = Site(tmp_path)
    found = site.dirs.table.get(TP)
    assert found is not None
    assert contents(found) == [(0, "new")]
    site.crash()


def test_a_log_is_set_aside_with_everything_in_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    append(site.create(), "a")
    site.dirs.set_aside(TP)
    assert site.dirs.table.get(TP) is None
    (stray,) = tmp_path.glob("orders-0.*-stray")
    site.stop()
    assert (stray / "00000000000000000000.log").stat().st_size > 0
    site = Site(tmp_path)
    assert contents(site.create()) == []
    assert stray.is_dir()
    site.crash()


def test_strange_directories_are_left_alone(tmp_path: Path) -> None:
    for name in ("lost+found", "orders-0.abc-stray", "orders-future", "remote-log-index-cache"):
        (tmp_path / name).mkdir()
    site = Site(tmp_path)
    assert site.dirs.table.logs_in(tmp_path) == {}
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 4
    site.crash()


def test_a_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "orders-0").mkdir(parents=True)
    with pytest.raises(FatalError, match="two directories"):
        Site(tmp_path / "one", tmp_path / "two")


def test_a_failed_disk_takes_its_own_partitions_only(tmp_path: Path) -> None:
    site = Site(tmp_path / "one", tmp_path / "two")
    first, second = site.create(TopicPartition("orders", 0)), site.create(TopicPartition("orders", 1))
    first.files.fail(OSError(errno.EIO, "Input/output error"))
    assert not site.dirs.table.is_online(first.directory.parent)
    assert site.dirs.table.get(first.partition) is None
    with pytest.raises(KafkaError) as refused:
        site.create(first.partition)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    append(second, "still served")
    assert site.create(TopicPartition("orders", 2)).directory.parent == second.directory.parent
    assert site.failures == []
    second.files.fail(OSError(errno.EIO, "Input/output error"))
    assert "All log directories have failed" in site.failures[0]
    site.stop()
    assert not list(tmp_path.glob("*/.kafka_cleanshutdown"))


def test_what_a_cut_log_writes_anew_is_not_trusted_after_a_crash(tmp_path: Path) -> None:
    """The recovery point on disk goes back with the log, or a segment that fsync never confirmed would be opened
    unread."""
    site = Site(tmp_path / "d", segment_bytes="1000")
    log = site.create()
    for number in range(40):
        append(log, f"value {number}")
    log.flush()
    site.dirs.table.checkpoint_recovery_points()
    log.truncate_to(5)
    for number in range(5, 40):
        append(log, f"other {number}", leader_epoch=1)
    unconfirmed = log.segments[1]  # its fsync waits for a thread that the crash comes before
    assert log.recovery_point == 5
    site.crash()
    content = bytearray(unconfirmed.path.read_bytes())
    content[-1] ^= 1  # as a power failure leaves it
    unconfirmed.path.write_bytes(content)
    again = Site(tmp_path / "d", segment_bytes="1000")
    opened = again.dirs.table.logs[TP]
    assert opened.log_end_offset == unconfirmed.end_offset - 1
    assert values_of(contents(opened)) == [
        *(f"value {number}" for number in range(5)),
        *(f"other {number}" for number in range(5, unconfirmed.end_offset - 1)),
    ]


def test_a_topic_made_again_costs_one_write_of_each_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one for each of its partitions: the thread that makes them is the one that elections wait for."""
    site = Site(tmp_path / "d", cleanup_policy="compact")
    partitions = [TopicPartition("orders", number) for number in range(20)]
    for tp in partitions:
        append(site.create(tp), "a")
        site.dirs.cleaned.put(site.dirs.table.logs[tp], 1)
    site.dirs.table.checkpoint_recovery_points()
    site.dirs.table.checkpoint_high_watermarks(dict.fromkeys(partitions, 1))
    written: list[str] = []
    for module in ("directories.directory_checkpoints", "compaction.cleaned_offsets"):
        name = f"odradek.broker.log.{module}.write_offsets"
        monkeypatch.setattr(name, lambda path, offsets: (written.append(path.name), write_offsets(path, offsets)))
    for tp in partitions:
        site.dirs.delete(tp)
    for tp in partitions:
        site.create(tp, UUID(int=2))
    assert sorted(written) == [CLEANER_FILE, RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE]
    for name in written:
        assert read_offsets(tmp_path / "d" / name) == {}
    assert site.dirs.cleaned.of(site.dirs.table.logs[partitions[0]]) is None
