"""Keeper of the rates of a day and of alerts: reads every cluster once a minute, even while no page is open.

A reading is the metadata of all topics, the ends of their partitions, the offsets of the first hundred groups, a few
settings of topics and the log directories of brokers, over connections that are closed after it. With logins the
console has no credentials, and only open pages note rates and alerts.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odradek.apps.console.console import Console
from odradek.apps.console.feeds import READING_TIMEOUT_MS, UNREADABLE
from odradek.apps.console.readings.cluster import ClusterState, read_cluster
from odradek.apps.console.readings.groups import known_lags, read_groups
from odradek.apps.console.readings.offsets import high_watermarks
from odradek.apps.console.readings.settings import read_settings
from odradek.apps.console.readings.storage import read_storage
from odradek.apps.console.readings.traffic import growth
from odradek.apps.console.views.alerts import Alert, all_alerts
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.logs import get_logger
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient, TopicState
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
        self._clusters: dict[int, ClusterState] = {}
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
        """Read each cluster once; a cluster without an answer has a gap."""
        for number, console in enumerate(self._consoles):
            try:
                with console.access.client(READING_TIMEOUT_MS) as client:
                    state = read_cluster(client, self._clusters.get(number))
                    self._clusters[number] = state
                    console.alert_log.note(state.at_ms, *_alerts(client, state))
                    now = read_sample(client, state.topics)
            except ConnectionFailed:
                now_ms = SYSTEM_CLOCK.now_ms()
                console.alert_log.note(now_ms, *all_alerts(None, None, None, None, None, now_ms))
                continue
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


def _alerts(client: ClusterClient, state: ClusterState) -> tuple[list[Alert], frozenset[str]]:
    settings, storage = read_settings(client, state.topics), read_storage(client, None)
    return all_alerts(state, settings, storage, None, None, state.at_ms)


def read_sample(client: ClusterClient, topics: Mapping[str, TopicState]) -> Sample:
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
