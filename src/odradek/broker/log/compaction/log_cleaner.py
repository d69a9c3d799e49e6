"""The cleaner threads: each cleans the dirtiest compacted log that no other thread is cleaning, then looks for the
next.

`dirtiness` decides which logs are worth cleaning, `cleaner` cleans them. A corrupt log is reported once and skipped
until the broker restarts or the log is replaced. If the disk of a log fails, its directory is taken offline. If a log
is truncated, moved, deleted or no longer compacted, its cleaning is aborted and tried again later.
"""

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from odradek.base.clock import Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.broker.log.compaction.cleaned_offsets import CleanedOffsets
from odradek.broker.log.compaction.cleaner import CleanableLog, Cleaner, CleaningAborted, CleaningStats
from odradek.broker.log.core.dirtiness import Dirtiness, assess, filthiest, first_dirty_offset
from odradek.broker.log.core.key_map import KeyMap
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import TopicPartition

_LOOK_EVERY_MS = 300


class IoThrottle:
    """Keeps several threads together below so many bytes a second, looking every 300 ms as Kafka does."""

    def __init__(self, bytes_per_second: float, clock: Clock, wait: Callable[[float], object]) -> None:
        """`wait` takes seconds, and may return early when the cleaner stops."""
        self._bytes_per_ms = bytes_per_second / 1000
        self._clock = clock
        self._wait = wait
        self._lock = threading.Lock()
        self._since_ms = clock.monotonic_ms()
        self._bytes = 0

    def used(self, size: int) -> None:
        """Count bytes that were read or written. Waits when that was too fast; the other threads wait with this one."""
        with self._lock:
            self._bytes += size
            elapsed_ms = self._clock.monotonic_ms() - self._since_ms
            if elapsed_ms <= _LOOK_EVERY_MS:
                return
            too_early_ms = self._bytes / self._bytes_per_ms - elapsed_ms
            if too_early_ms > 0:
                self._wait(too_early_ms / 1000)
            self._since_ms = self._clock.monotonic_ms()
            self._bytes = 0


Host = TypeVar("Host", bound=CleanableLog)

_MAX_MAP_BYTES = 2**31 - 1
_SETTINGS = (
    "log.cleaner.threads",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
)

log = get_logger(__name__)


class LogCleaner:
    """`hosts` are the partitions of this broker, as they are at each moment."""

    def __init__(
        self, config: BrokerConfig, hosts: Mapping[TopicPartition, Host], cleaned: CleanedOffsets, clock: Clock
    ) -> None:
        self.max_dirty_ratio = 0.0
        self.last_run_ms = clock.now_ms()
        self.last_stats = CleaningStats()
        self.uncleanable: dict[TopicPartition, PartitionLog] = {}
        """Logs that couldn't be cleaned, and won't be tried again."""
        self._hosts = hosts
        self._cleaned = cleaned
        self._clock = clock
        self._stopping = threading.Event()
        self._choosing = threading.Lock()
        self._in_progress: set[TopicPartition] = set()
        self._threads: list[threading.Thread] = []
        self._lifecycle = threading.Lock()
        self._is_over = False
        self._use(config)

    def _use(self, config: BrokerConfig) -> None:
        self._config = config
        self._backoff_s = config.log_cleaner_backoff_ms / 1000
        rate = config.log_cleaner_io_max_bytes_per_second
        self._throttle = IoThrottle(rate, self._clock, self._stopping.wait)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Replace the threads by new ones, as Kafka does."""
        if all(config.get(name) == self._config.get(name) for name in _SETTINGS):
            return
        with self._lifecycle:
            if not self._is_over:
                self._stop_threads()
                self._stopping.clear()
                self._use(config)
                self.start()

    def start(self) -> None:
        if not self._config.log_cleaner_enable:
            return
        count = self._config.log_cleaner_threads
        for number in range(count):
            thread = SupervisedThread(target=self._run, args=(self.new_cleaner(count),), name=f"log-cleaner-{number}")
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Returns when no thread uses a log any more. A log that was being cleaned stays unchanged."""
        with self._lifecycle:
            self._is_over = True
            self._stop_threads()

    def _stop_threads(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    @property
    def dead_threads(self) -> int:
        return 0 if self._stopping.is_set() else sum(not thread.is_alive() for thread in self._threads)

    def new_cleaner(self, threads: int = 1) -> Cleaner:
        """Make a cleaner with one thread's part of the memory."""
        load_factor = self._config.log_cleaner_io_buffer_load_factor
        map_bytes = min(self._config.log_cleaner_dedupe_buffer_size // threads, _MAX_MAP_BYTES)
        buffer_bytes = self._config.log_cleaner_io_buffer_size // threads // 2
        return Cleaner(KeyMap(map_bytes, load_factor), buffer_bytes, self._throttle.used)

    def _run(self, cleaner: Cleaner) -> None:
        while not self._stopping.is_set():
            try:
                cleaned = self.clean_filthiest(cleaner)
            except Exception:
                log.exception("log cleaner failed to choose a log")
                cleaned = False
            if not cleaned:
                self._stopping.wait(self._backoff_s)

    def clean_filthiest(self, cleaner: Cleaner) -> bool:
        """Clean the dirtiest log; return whether there was one, because then another one may be dirty too."""
        chosen = self._choose()
        if chosen is None:
            return False
        try:
            return self._clean(cleaner, chosen)
        finally:
            with self._choosing:
                self._in_progress.discard(chosen.partition)

    def _choose(self) -> "_Candidate | None":
        self.last_run_ms = now_ms = self._clock.now_ms()
        with self._choosing:
            self._forget_gone_uncleanables()
            candidates = []
            for tp, host in dict(self._hosts).items():
                cleanable = host.log.config.compacts and not host.log.is_copied
                if cleanable and tp not in self._in_progress and tp not in self.uncleanable:
                    candidates += self._candidates(tp, host, now_ms)
            self.max_dirty_ratio = max((candidate.dirtiness.ratio for candidate in candidates), default=0.0)
            slot = filthiest((candidate.dirtiness, candidate.log.config) for candidate in candidates)
            if slot is None:
                return None
            self._in_progress.add(candidates[slot].partition)
            return candidates[slot]

    def _candidates(self, tp: TopicPartition, host: CleanableLog, now_ms: int) -> "list[_Candidate]":
        """The present state of the log; None if its dirtiness can't be determined."""
        opened = host.log
        truncations = opened.flushed.truncations  # before anything that a truncation makes wrong
        stable = host.last_stable_offset(host.high_watermark)
        first_dirty = first_dirty_offset(self._cleaned.of(opened), opened.log_start_offset, opened.log_end_offset)
        try:
            dirtiness = assess(
                opened.segments, opened.config, first_dirty=first_dirty, last_stable_offset=stable, now_ms=now_ms
            )
        except FileNotFoundError:  # retention was faster
            return []
        except Exception:
            self._leave_alone(tp, opened)
            return []
        return [_Candidate(tp, host, opened, truncations, dirtiness)]

    def _clean(self, cleaner: Cleaner, chosen: "_Candidate") -> bool:
        tp, host, opened, truncations, dirtiness = chosen
        started_ms = self._clock.monotonic_ms()

        def go_on() -> bool:
            is_same = self._hosts.get(tp) is host and host.log is opened and opened.flushed.truncations == truncations
            return is_same and not self._stopping.is_set()

        try:
            stats = cleaner.clean(host, dirtiness, self._clock.now_ms(), go_on)
            with host.lock:  # a truncation lowers the offset, which must not be raised again after it
                if not go_on():
                    raise CleaningAborted("the log was cut, moved or deleted")
                self._cleaned.put(opened, stats.end_offset)
        except CleaningAborted as error:
            log.info("log cleaning aborted", partition=str(tp), reason=str(error))
            return False
        except OSError as error:
            opened.files.fail(error)
            return False
        except Exception as error:
            if isinstance(error, KafkaError) and error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                return False  # the directory is offline already
            self._leave_alone(tp, opened)
            return False
        stats.took_ms = self._clock.monotonic_ms() - started_ms
        self.last_stats = stats
        _report(tp, dirtiness, stats)
        return True

    def _leave_alone(self, tp: TopicPartition, opened: PartitionLog) -> None:
        log.exception("log marked uncleanable", partition=str(tp))
        self.uncleanable[tp] = opened

    def _forget_gone_uncleanables(self) -> None:
        for tp, opened in list(self.uncleanable.items()):
            host = self._hosts.get(tp)
            if host is None or host.log is not opened:
                del self.uncleanable[tp]


class _Candidate(NamedTuple):
    partition: TopicPartition
    host: CleanableLog
    log: PartitionLog
    truncations: int
    dirtiness: Dirtiness


def _report(tp: TopicPartition, dirtiness: Dirtiness, stats: CleaningStats) -> None:
    log.info(
        "log cleaned",
        partition=str(tp),
        dirty=[dirtiness.first_dirty, stats.end_offset],
        bytes=[stats.bytes_read, stats.bytes_written],
        records=[stats.records_read, stats.records_kept],
        keys=stats.keys,
        buffer_percent=round(100 * stats.buffer_utilisation, 1),
        ms=stats.took_ms,
    )
    if stats.keyless:
        log.warning("records without a key dropped by the log cleaner", partition=str(tp), records=stats.keyless)
    if stats.old_formats:
        log.warning("log with old message formats not cleaned", partition=str(tp), messages=stats.old_formats)
