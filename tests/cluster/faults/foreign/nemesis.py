"""Faults of one broker at a time, drawn from a seed, while foreign producers write.

    kill       kill -9, and a restart within the old ZooKeeper session or after it
    freeze     SIGSTOP for less than a session or for more, then SIGCONT
    stop       a clean stop, and a restart
    birth      a topic whose records are queued loses a leader in its first second, in one of these ways
    client     a client is killed or frozen, and another one takes its place

Between faults preferred leaders are elected and replicas move; while a broker is frozen topics, partitions and
producers are born. The next fault waits until all replicas are in sync, unless the plan is hasty.
"""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from chaos.clients import await_condition
from chaos.operations import elect_preferred, reassign, reassigning
from odradek.model.topology import TopicPartition

from .plan import REPLICATION_FACTOR, TOPIC

if TYPE_CHECKING:
    from .run import ForeignRun

HEAL_S_MAX: Final = 240.0
_BIRTH_S_MAX: Final = 60.0
_ASK_S_MAX: Final = 20.0
_RETRY_S: Final = 0.5
_MOVE_S_MAX: Final = 120.0
_BURST: Final = (0, 200, 1000, 3000)
_JAVA_BORN_MAX: Final = 2
_TOPICS_MAX: Final = 12


class ForeignNemesis:
    def __init__(self, run: "ForeignRun") -> None:
        self._run = run
        self._cluster = run.cluster
        self._plan = run.plan
        self._chance = random.Random(run.plan.seed)
        self._java_born = 0

    def rage(self) -> None:
        """Fault after fault for as long as the plan says; the last one is over when it ends."""
        chance = self._chance
        known: dict[str, Callable[[int], None]] = {
            "kill": self._kill,
            "freeze": self._freeze,
            "stop": self._stop,
            "birth": self._birth,
            "client": lambda _: self._run.strike_client(chance),
        }
        faults = [known[name] for name in self._plan.faults]
        end = time.monotonic() + self._plan.seconds
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.5, 2.0))
            if self._plan.operations and chance.random() < 0.5:
                self._operate()
            chance.choice(faults)(chance.randrange(len(self._cluster.brokers)))
            if not self._plan.hasty or chance.random() < 0.3:
                self._run.await_in_sync(HEAL_S_MAX)

    # ---- faults

    def _kill(self, broker: int) -> None:
        self._tell(f"kill {broker}")
        self._cluster.brokers[broker].kill()
        self._return(broker, self._downtime())

    def _stop(self, broker: int) -> None:
        self._tell(f"stop {broker}")
        self._cluster.brokers[broker].stop()
        self._return(broker, self._chance.choice((0.0, self._within_session())))

    def _freeze(self, broker: int) -> None:
        seconds = self._chance.choice((self._within_session(), self._after_session()))
        self._tell(f"freeze {broker} for {seconds:.1f} s")
        self._cluster.brokers[broker].pause()
        birth = threading.Thread(target=self._bear()) if self._plan.births and self._chance.random() < 0.5 else None
        if birth is not None:
            birth.start()
        time.sleep(seconds)
        self._cluster.brokers[broker].resume()
        self._tell(f"thaw {broker}")
        if birth is not None:
            birth.join()

    def _birth(self, _: int) -> None:
        """A topic loses a leader in the first second of its life. Its records are queued before it exists, when it
        does, or when the leader is lost: then the next leader meets them all at once, in an empty log."""
        chance = self._chance
        topic, partitions = self._new_topic_name(), chance.choice(self._plan.born_partitions)
        queued, burst = chance.choice(("before", "after", "late", "late")), chance.choice(_BURST)
        victim, patience = chance.randrange(partitions), chance.uniform(0.0, 1.0)
        ways = {"kill": self._lose_by_kill, "freeze": self._lose_by_freeze, "stop": self._lose_by_stop}
        how = ways[chance.choice(self._plan.born_lose_by)]
        self._tell(f"topic {topic} with {partitions} partitions, {burst} records queued {queued}")
        if queued == "before":
            self._run.write_to(topic, partitions, burst)
        self._create(topic, partitions)
        if queued == "after":
            self._run.write_to(topic, partitions, burst)
        leader = self._await_leader(TopicPartition(topic, victim))
        if leader < 0:
            return
        time.sleep(patience)
        self._tell(f"{leader} leads {topic}-{victim} for {patience:.2f} s")
        how(leader, lambda: self._run.write_to(topic, partitions, burst) if queued == "late" else None)

    def _lose_by_kill(self, leader: int, then: Callable[[], None]) -> None:
        down_s = self._downtime()
        self._tell(f"kill {leader}")
        self._cluster.brokers[leader].kill()
        then()
        if self._chance.random() < 0.3:
            self._new_producer()
        self._return(leader, down_s)

    def _lose_by_freeze(self, leader: int, then: Callable[[], None]) -> None:
        """Freeze it: requests lie unread in its sockets."""
        seconds = self._after_session()
        self._tell(f"freeze {leader} for {seconds:.1f} s")
        self._cluster.brokers[leader].pause()
        then()
        time.sleep(seconds)
        self._cluster.brokers[leader].resume()
        self._tell(f"thaw {leader}")

    def _lose_by_stop(self, leader: int, then: Callable[[], None]) -> None:
        then()
        self._tell(f"stop {leader}")
        self._cluster.brokers[leader].stop()
        self._return(leader, 0.0)

    def _return(self, broker: int, after_s: float) -> None:
        time.sleep(after_s)
        self._tell(f"start {broker} after {after_s:.1f} s")
        self._cluster.start(broker)

    def _downtime(self) -> float:
        """Start a killed broker. Kafka's don't start while their old session lives."""
        drawn = self._chance.choice((0.0, self._within_session(), self._after_session()))
        return drawn if self._plan.brokers == "odradek" else max(drawn, 1.5 * self._plan.session_s)

    def _within_session(self) -> float:
        return self._chance.uniform(0.1, 0.9) * self._plan.session_s

    def _after_session(self) -> float:
        return self._chance.uniform(1.2, 2.2) * self._plan.session_s

    # ---- births

    def _bear(self) -> Callable[[], None]:
        """Create a topic while a broker is frozen. The cluster may take it only when the broker is thawed."""
        kind = self._chance.choice(("topic", "partitions", "producer"))
        if kind == "producer":
            return self._new_producer
        if kind == "topic":
            topic, burst = self._new_topic_name(), self._chance.choice(_BURST)

            def new_topic() -> None:
                self._tell(f"topic {topic} is born, {burst} records queued")
                self._run.write_to(topic, 3, burst)
                self._create(topic, 3)

            return new_topic
        count = self._run.topics[TOPIC] + 1

        def new_partition() -> None:
            self._tell(f"topic {TOPIC} gets partition {count - 1}")
            self._run.write_to(TOPIC, count)
            self._carry_out(lambda admin: admin.create_partitions([NewPartitions(TOPIC, count)])[TOPIC])

        return new_partition

    def _new_producer(self) -> None:
        if self._plan.java and self._java_born < _JAVA_BORN_MAX and self._chance.random() < 0.3:
            self._java_born += 1
            self._tell(f"{self._run.add_java(TOPIC).name} is born")
        else:
            self._tell(f"{self._run.add_librdkafka().name} is born")

    def _new_topic_name(self) -> str:
        """A topic that isn't there yet; the oldest of those is left to itself when there are many."""
        born = [topic for topic in self._run.topics if topic != TOPIC]
        if len(born) >= _TOPICS_MAX:
            self._run.write_to(self._chance.choice(born), 0)
        return f"born-{len(born)}"

    def _create(self, topic: str, partitions: int) -> None:
        wanted = NewTopic(topic, partitions, REPLICATION_FACTOR)
        self._carry_out(lambda admin: admin.create_topics([wanted])[topic])

    def _carry_out(self, ask: Callable[[AdminClient], Future[None]]) -> None:
        """Ask until it is done. Each time by a new client: an old one knows an old controller for minutes."""
        end = time.monotonic() + _BIRTH_S_MAX
        while time.monotonic() < end:
            admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, "log_level": 0})
            try:
                ask(admin).result(_ASK_S_MAX)
            except TimeoutError:
                self._tell("not taken in time")
            except KafkaException as error:
                if error.args[0].code() in (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS):
                    return
                self._tell(f"not taken: {error.args[0].str()}")
                time.sleep(_RETRY_S)
            else:
                return

    def _await_leader(self, tp: TopicPartition) -> int:
        await_condition(lambda: self._cluster.leader(tp) >= 0, _BIRTH_S_MAX)
        return self._cluster.leader(tp)

    # ---- what operators do

    def _operate(self) -> None:
        """A controller that is about to be replaced may not take it; then it is not done."""
        chance = self._chance
        tp = TopicPartition(TOPIC, chance.randrange(self._run.topics[TOPIC]))
        homes = tuple(chance.sample(range(len(self._cluster.brokers)), REPLICATION_FACTOR))
        what = chance.choice(("elect", "elect", "order", "fewer"))
        with suppress(TimeoutError, RuntimeError):
            if what == "elect":
                self._tell("preferred leaders are elected")
                elect_preferred(self._cluster)
            elif what == "order":
                self._tell(f"{tp} is to have replicas {homes}")
                reassign(self._cluster, {tp: homes})
            else:
                self._tell(f"{tp} is to have replicas {homes[:-1]}, then {homes}")
                reassign(self._cluster, {tp: homes[:-1]})
                await_condition(lambda: reassigning(self._cluster) == 0, _MOVE_S_MAX)
                reassign(self._cluster, {tp: homes})
                await_condition(lambda: reassigning(self._cluster) == 0, _MOVE_S_MAX)

    def _tell(self, what: str) -> None:
        self._run.tell(what)
