"""Random faults, one after the other, drawn from a seed.

One broker at a time is killed, stopped, frozen or cut off; meanwhile ZooKeeper may restart, leaders go home and
replicas move, for operators don't wait for fine weather. Each fault is over before the next, but what it broke needn't
have healed: now and then the nemesis waits for that, now and then it doesn't.
"""

import random
import time
from collections.abc import Callable
from contextlib import suppress

from chaos.operations import elect_preferred, reassign
from chaos.story import Story
from odradek.apps.lab.hosts import Hosts
from odradek.base.logs import get_logger
from odradek.local.zookeeper_server import EmbeddedZooKeeper

log = get_logger(__name__)

SESSION_S = 3.0
"""Session timeout of the clusters in stories: faults end before it does, or after."""


class Nemesis:
    """Works on the cluster of a story whose brokers are on hosts of their own."""

    def __init__(self, story: Story, hosts: Hosts, zookeeper: EmbeddedZooKeeper, seed: int) -> None:
        self._story = story
        self._cluster = story.cluster
        self._hosts = hosts
        self._zookeeper = zookeeper
        self._seed = seed
        self._chance = random.Random(seed)

    def rage(self, seconds: float) -> None:
        """Fault after fault for so long."""
        faults: list[Callable[[int], None]] = [
            self._kill,
            self._stop,
            self._freeze,
            self._cut_from_zookeeper,
            self._cut_from_peers,
            self._cut_from_one_peer,
            self._cut_from_clients,
            self._restart_zookeeper,
        ]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._chance.random() < 0.5:
                self._operate()
            self._chance.choice(faults)(self._chance.randrange(len(self._cluster.brokers)))
            if self._chance.random() < 0.5:
                self._story.await_isr(self._story.replication_factor)
                self._tell("all are in sync")

    # ---- faults of one broker

    def _kill(self, broker: int) -> None:
        self._tell(f"kill -9 of broker {broker}")
        self._cluster.brokers[broker].kill()
        self._while_it_lasts()
        self._cluster.start(broker)

    def _stop(self, broker: int) -> None:
        self._tell(f"broker {broker} is stopped politely")
        self._cluster.brokers[broker].stop()
        self._while_it_lasts()
        self._cluster.start(broker)

    def _freeze(self, broker: int) -> None:
        self._tell(f"broker {broker} is frozen")
        self._cluster.brokers[broker].pause()
        self._while_it_lasts()
        self._cluster.brokers[broker].resume()

    def _cut_from_zookeeper(self, broker: int) -> None:
        self._tell(f"broker {broker} is cut off from ZooKeeper")
        self._hosts.cut_from_zookeeper(broker)
        self._while_it_lasts()
        self._hosts.heal()

    def _cut_from_peers(self, broker: int) -> None:
        self._tell(f"broker {broker} is cut off from its peers")
        self._hosts.cut(broker, *self._others(broker))
        self._while_it_lasts()
        self._hosts.heal()

    def _cut_from_one_peer(self, broker: int) -> None:
        other = self._chance.choice(self._others(broker))
        self._tell(f"brokers {broker} and {other} are cut off from each other")
        self._hosts.cut(broker, other)
        self._while_it_lasts()
        self._hosts.heal()

    def _cut_from_clients(self, broker: int) -> None:
        self._tell(f"broker {broker} is cut off from its clients")
        self._hosts.cut_from_clients(broker)
        self._while_it_lasts()
        self._hosts.heal()

    def _restart_zookeeper(self, _: int) -> None:
        self._tell("ZooKeeper restarts")
        self._zookeeper.kill()
        self._while_it_lasts()
        self._zookeeper.start()

    # ---- what operators do

    def _operate(self) -> None:
        """A controller that is about to be replaced may not take it; then it is not done."""
        tp = self._chance.choice(self._story.partitions)
        brokers = range(len(self._cluster.brokers))
        homes = tuple(self._chance.sample(brokers, self._story.replication_factor))
        with suppress(TimeoutError, RuntimeError):
            if self._chance.random() < 0.5:
                self._tell("preferred leaders are elected")
                elect_preferred(self._cluster)
            else:
                self._tell(f"{tp} is to move to {homes}")
                reassign(self._cluster, {tp: homes})

    def _others(self, broker: int) -> list[int]:
        return [each.id for each in self._cluster.brokers if each.id != broker]

    def _while_it_lasts(self) -> None:
        time.sleep(SESSION_S * self._chance.choice((0.1, 0.5, 1.0, 2.0, 3.0)))

    def _tell(self, what: str) -> None:
        log.warning(what, seed=self._seed, acknowledged=self._story.history.acknowledged_count())
