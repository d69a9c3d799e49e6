"""kafka-consumer-perf-test: reads records as a member of a group and prints the speed."""

import random
import time
from datetime import datetime

from odradek.apps.cli.kafka.options import BOOTSTRAP, EVERY_TOOL, Given, Option, OptionTable, WrongOptions
from odradek.apps.cli.kafka.tool import ToolError, connect
from odradek.apps.cli.perf_stats import MEGABYTE
from odradek.base.errors import KafkaError
from odradek.client.group_reader import GroupReader
from odradek.client.record_reader import Fetched, FetchOptions
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

TABLE = OptionTable(
    "This tool is used to verify the consumer performance.",
    BOOTSTRAP,
    Option("broker-list", "the same as --bootstrap-server", "HOST:PORT,…"),
    Option("topic", "the topic to read", "TOPIC"),
    Option("messages", "number of records", "N"),
    Option("group", "the group to be a member of", "GROUP"),
    Option("fetch-size", "bytes per partition in one answer", "BYTES", default="1048576"),
    Option("from-latest", "start at the end if the group has no offset"),
    Option("timeout", "ms without a record before giving up", "MS", default="10000"),
    Option("hide-header", "without the header line"),
    Option("consumer.config", "a file with properties of the client", "FILE"),
    Option("show-detailed-stats", "print a line for every interval"),
    Option("reporting-interval", "ms of an interval", "MS", default="5000"),
    Option("socket-buffer-size", "accepted, without effect", "BYTES"),
    Option("threads", "accepted, without effect", "N"),
    Option("num-fetch-threads", "accepted, without effect", "N"),
    Option("print-metrics", "accepted, without effect"),
    *EVERY_TOOL,
)
_NAMES = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, "
    "fetch.nMsg.sec"
)


def run(given: Given) -> int:
    given.require("topic", "messages")
    server = "bootstrap-server" if given.has("bootstrap-server") or not given.has("broker-list") else "broker-list"
    messages, timeout_ms = given.number("messages") or 0, given.number("timeout") or 10_000
    interval_ms = given.number("reporting-interval") or 0
    if messages < 1 or interval_ms < 1:
        raise WrongOptions("--messages and --reporting-interval must be positive")
    detailed = given.has("show-detailed-stats")
    if not given.has("hide-header"):
        print(f"{'time, threadId' if detailed else 'start.time, end.time'}, {_NAMES}")
    with connect(given, config_option="consumer.config", server_option=server) as client:
        try:
            client.topic(given.text("topic"))
            reader = GroupReader(
                client,
                given.value("group") or f"perf-consumer-{random.randrange(100_000)}",
                [given.text("topic")],
                begin_at=LATEST if given.has("from-latest") else EARLIEST,
                options=FetchOptions(max_wait_ms=100, partition_max_bytes=given.number("fetch-size") or MEGABYTE),
            )
            count = _Count(interval_ms if detailed else None)
            while count.records < messages and count.silence_ms <= timeout_ms:
                count.take(reader.poll())
            reader.close({})
        except KafkaError as error:
            raise ToolError(str(error)) from None
    if count.records < messages:
        print(
            "WARNING: Exiting before consuming the expected number of messages: "
            f"timeout ({timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
        )
    if not detailed:
        print(count.total_line())
    return 0


class _Count:
    def __init__(self, interval_ms: int | None) -> None:
        self.records = self.bytes = 0
        self._interval_ms = interval_ms
        self._began = self._last_record_at = self._reported_at = time.time()
        self._joined_at: float | None = None
        self._reported = (0, 0)

    @property
    def silence_ms(self) -> float:
        return (time.time() - self._last_record_at) * 1000

    def take(self, fetched: list[Fetched]) -> None:
        now = time.time()
        if fetched:
            self._joined_at = self._joined_at or now
            self._last_record_at = now
        for item in fetched:
            self.records += sum(header.record_count for _, header in item.batches)
            self.bytes += sum(header.size for _, header in item.batches)
        if self._interval_ms is not None and (now - self._reported_at) * 1000 >= self._interval_ms:
            print(self._interval_line(now))
            self._reported_at, self._reported = now, (self.records, self.bytes)

    def total_line(self) -> str:
        end = time.time()
        joining_ms = ((self._joined_at or end) - self._began) * 1000
        fetching_ms = max((end - self._began) * 1000 - joining_ms, 1.0)
        return f"{_moment(self._began)}, {_moment(end)}, " + _figures(
            self.bytes, self.records, self.bytes, self.records, (end - self._began) * 1000, joining_ms, fetching_ms
        )

    def _interval_line(self, now: float) -> str:
        passed_ms = (now - self._reported_at) * 1000
        records, size = self.records - self._reported[0], self.bytes - self._reported[1]
        return f"{_moment(now)}, 0, " + _figures(self.bytes, self.records, size, records, passed_ms, 0.0, passed_ms)


def _figures(
    total_bytes: int, total: int, size: int, records: int, passed_ms: float, joining_ms: float, fetching_ms: float
) -> str:
    megabytes = size / MEGABYTE
    return (
        f"{total_bytes / MEGABYTE:.4f}, {megabytes * 1000 / passed_ms:.4f}, {total}, {records * 1000 / passed_ms:.4f}, "
        f"{joining_ms:.0f}, {fetching_ms:.0f}, {megabytes * 1000 / fetching_ms:.4f}, {records * 1000 / fetching_ms:.4f}"
    )


def _moment(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
    return f"{text}:{int(seconds * 1000) % 1000:03d}"
