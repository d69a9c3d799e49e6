"""How many requests of each kind, and where their time goes: queue, local, remote, response, total."""

from collections import Counter
from collections.abc import Iterable

from odradek.base.metrics import Sample, Timing, timing_samples
from odradek.protocol.api_keys import ApiKey


class ApiTimings:
    """The timings of one API. `queue` is the wait for a thread, `remote` the wait in a purgatory."""

    __slots__ = ("_by_version", "local", "queue", "remote", "response", "total")

    def __init__(self) -> None:
        self._by_version: Counter[int] = Counter()
        self.queue = Timing()
        self.local = Timing()
        self.remote = Timing()
        self.response = Timing()
        self.total = Timing()

    def record(
        self, version: int, received_ns: int, started_ns: int, handled_ns: int, replied_ns: int, sent_ns: int
    ) -> None:
        self._by_version[version] += 1
        self.queue.record(started_ns - received_ns)
        self.local.record(handled_ns - started_ns)
        self.remote.record(max(0, replied_ns - handled_ns))
        self.response.record(sent_ns - replied_ns)
        self.total.record(sent_ns - received_ns)

    def samples(self, api: str) -> Iterable[Sample]:
        prefix = "kafka_network_requestmetrics_"
        for version, count in sorted(self._by_version.copy().items()):
            yield Sample(f"{prefix}requests_total", "counter", count, {"request": api, "version": str(version)})
        for name, timing in (
            ("requestqueuetimems", self.queue),
            ("localtimems", self.local),
            ("remotetimems", self.remote),
            ("responsesendtimems", self.response),
            ("totaltimems", self.total),
        ):
            yield from timing_samples(prefix + name, timing, {"request": api})


class RequestMetrics:
    def __init__(self) -> None:
        self._apis: dict[int, ApiTimings] = {}

    def of(self, key: int) -> ApiTimings:
        timings = self._apis.get(key)
        if timings is None:
            timings = self._apis.setdefault(key, ApiTimings())
        return timings

    def samples(self) -> Iterable[Sample]:
        for key, timings in sorted(self._apis.items()):
            yield from timings.samples(ApiKey(key).name.title().replace("_", ""))
