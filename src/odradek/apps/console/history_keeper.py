"""Keeper of the rates of a day: reads every cluster once a minute, also when nobody looks.

A reading is the metadata of all topics, the ends of their partitions and the offsets of the first hundred groups, over
connections that are closed after it. With logins the console has no credentials, and only open pages note rates.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odradek.apps.console.console import Console
from odradek.apps.console.feeds import READING_TIMEOUT_MS, UNREADABLE
from odradek.apps.console.readings.groups import known_lags, read_groups
from odradek.apps.console.readings.offsets import high_watermarks
from odradek.apps.console.readings.traffic import growth
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.logs import get_logger
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition

log = get_logger(__name__)

_INTERVAL_S = 60.0
_FIRST_S = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A cluster at one moment."""

    at_ms: int
    topics: frozenset[str]
    ends: Mapping[TopicPartition, int]
    lags: Mapping[str, float]


class HistoryKeeper:
    """A thread of its own; the histories that it writes to are thread-safe."""

    def __init__(self, consoles: Sequence[Console]) -> None:
        self._consoles = consoles
        self._before: dict[int, Sample] = {}
        self._stopped = threading.Event()

    def start(self) -> None:
        if self._consoles:
            threading.Thread(target=self._run, name="history keeper", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        wait_s = _FIRST_S
        while not self._stopped.wait(wait_s):
            self.look()
            wait_s = _INTERVAL_S

    def look(self) -> None:
        """Read each cluster once; one that doesn't answer has a gap."""
        for number, console in enumerate(self._consoles):
            try:
                with console.access.client(READING_TIMEOUT_MS) as client:
                    now = read_sample(client)
            except UNREADABLE:
                continue
            except Exception:
                log.exception("rates could not be read", cluster=console.options.name)
                continue
            before = self._before.get(number)
            self._before[number] = now
            console.group_lags.note(now.at_ms, now.lags)
            if before is not None:
                console.topic_rates.note(now.at_ms, rates_between(before, now))


def read_sample(client: ClusterClient) -> Sample:
    topics = client.topics()
    ends = high_watermarks(client, topics.values())
    at_ms = SYSTEM_CLOCK.now_ms()
    return Sample(at_ms, frozenset(topics), ends, known_lags(read_groups(client, None)))


def rates_between(before: Sample, now: Sample) -> dict[str, float]:
    """Return the records per second of each topic that was there at both moments."""
    rates = dict.fromkeys(before.topics & now.topics, 0.0)
    seconds = (now.at_ms - before.at_ms) / 1000
    if seconds <= 0:
        return {}
    for tp, grown in growth(before.ends, now.ends):
        if tp.topic in rates:
            rates[tp.topic] += grown / seconds
    return rates
