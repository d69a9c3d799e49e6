"""One run of the judge of transactions.

librdkafka producers commit and abort transactions over the partitions of two topics. librdkafka programs that share a
group, and Kafka's own program, copy one of them, offsets and records in one transaction. Brokers and clients are killed
and frozen meanwhile; a frozen client has a successor before it goes on. Readers of committed records read from the
start, and once more when all is over.
"""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from chaos.clients import ChaosConsumer, await_condition
from chaos.history import History, Polled
from chaos.judge import Anomaly, judge
from chaos.operations import ask_controller
from chaos.transactions import Outcome, Transaction, add_to, copy_faults, torn
from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_client import ClusterClient
from odradek.client.partition_offsets import list_offsets
from odradek.model.topology import TopicPartition
from odradek.protocol.isolation import IsolationLevel
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.list_offsets import LATEST

from .plan import REPLICATION_FACTOR, TOPIC
from .reader import read_everything
from .run import ForeignRun, Verdict
from .transactional_clients import TIMEOUT_MS, JavaCopier, LibrdkafkaClient, Life, TransactionalClient

_PAYMENTS: Final = "payments"
_PAYMENT_PARTITIONS: Final = 2
_COPIES: Final = "copies"
_JAVA_COPIES: Final = "java-copies"
_GROUP: Final = "copiers"
_LOOK_S: Final = 0.2
_STABLE_S_MAX: Final = TIMEOUT_MS / 1000 + 10
"""Time after the end of its clients within which no transaction may be open any more."""
_COPY_S_MAX: Final = 40.0
_SUCCESSOR_S_MAX: Final = 60.0
_COPY_ATTEMPTS: Final = 3


class TransactionRun(ForeignRun):
    # ---- clients

    def start_clients(self) -> None:
        """Topics, readers and clients. A client that ends by itself is started again."""
        counts = {_PAYMENTS: _PAYMENT_PARTITIONS, _COPIES: self.plan.partitions, _JAVA_COPIES: self.plan.partitions}
        topics = [
            CreatableTopic(name=name, num_partitions=count, replication_factor=REPLICATION_FACTOR)
            for name, count in counts.items()
        ]
        ask_controller(self.cluster, CreateTopicsRequest(topics=topics, timeout_ms=20_000))
        self.histories = {topic: History() for topic in (_COPIES, _JAVA_COPIES)}
        written = History()
        self.histories |= {TOPIC: written, _PAYMENTS: written}
        self._readers = [
            ChaosConsumer(f"reader-{topic}", self.cluster.bootstrap, self._partitions_of(topic), history)
            for topic, history in self.histories.items()
        ]
        self._writers: list[TransactionalClient] = [self._librdkafka(f"t{n}") for n in range(self.plan.transactional)]
        self._copiers: list[TransactionalClient] = [self._copier(f"c{n}") for n in range(self.plan.copiers)]
        if self.plan.copiers:
            self._copiers.append(self._java_copier("j0"))
        self._kept_alive = [*self._writers, *self._copiers]
        for client in self._kept_alive:
            client.start()
        for reader in self._readers:
            reader.start()
        self._stopped = threading.Event()
        self._clients_lock = threading.Lock()
        self._keeper = threading.Thread(target=self._keep_alive, name="client-keeper")
        self._keeper.start()

    def _partitions_of(self, topic: str) -> list[TopicPartition]:
        count = _PAYMENT_PARTITIONS if topic == _PAYMENTS else self.plan.partitions
        return [TopicPartition(topic, number) for number in range(count)]

    def _librdkafka(self, name: str) -> TransactionalClient:
        places = {TOPIC: self.plan.partitions, _PAYMENTS: _PAYMENT_PARTITIONS}
        options = {"rate": self.plan.rate, "places": places, "settings": self._debugging("eos")}
        return LibrdkafkaClient("transactional_producer", name, self.directory, self.cluster.bootstrap, options)

    def _copier(self, name: str) -> TransactionalClient:
        options = {"group": _GROUP, "source": TOPIC, "target": _COPIES, "settings": self._debugging("eos,cgrp")}
        return LibrdkafkaClient("transactional_copier", name, self.directory, self.cluster.bootstrap, options)

    def _java_copier(self, name: str) -> TransactionalClient:
        assert self.kafka_lib is not None
        return JavaCopier(
            name, self.directory, self.cluster.bootstrap, self.kafka_lib, source=TOPIC, target=_JAVA_COPIES
        )

    @staticmethod
    def _debugging(areas: str) -> dict[str, Any]:
        return {"debug": areas, "log_level": 7}

    def _keep_alive(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            with self._clients_lock:
                for client in self._kept_alive:
                    if (life := client.revive()) is not None:
                        self.tell(f"{life.name} begins")

    def kill_clients(self) -> None:
        self._stop_keeper()
        for client in (*self._writers, *self._copiers):
            client.kill_all()
        for reader in self._readers:
            reader.stop()

    def _stop_keeper(self) -> None:
        self._stopped.set()
        self._keeper.join()

    def strike_client(self, chance: random.Random) -> None:
        """A kill in the midst of whatever it does; or a freeze, after which it meets its successor."""
        client = chance.choice([*self._writers, *self._copiers])
        how, seconds = chance.choice(("kill", "freeze")), chance.uniform(1.0, 10.0)
        frozen: Life | None = None
        with self._clients_lock:
            if how == "kill" or not client.may_be_frozen():
                self.tell(f"kill {client.kill()}")
            else:
                frozen = client.freeze()
                self.tell(f"freeze {frozen.name} for {seconds:.1f} s")
            self.tell(f"{client.start().name} begins")
        if frozen is not None:
            time.sleep(seconds)
            if await_condition(partial(client.has_successor, frozen), _SUCCESSOR_S_MAX):
                client.thaw(frozen)
                self.tell(f"thaw {frozen.name}")
            else:
                self.tell(f"no successor yet: kill {client.kill(frozen)}")

    # ---- the end

    def compare(self, verdict: Verdict) -> None:
        """The producers end first; then the copiers, when they have copied everything that can be read."""
        with self._clients_lock:
            self._kept_alive = self._copiers
        written, partitions = self.histories[TOPIC], self.partitions()
        transactions = self._end(self._writers, verdict)
        add_to(written, transactions)
        sources = [*self._partitions_of(TOPIC), *self._partitions_of(_PAYMENTS)]
        verdict.anomalies += self._hanging(sources)
        verdict.anomalies += read_everything(self.cluster.bootstrap, sources, written)
        final = [polled for polled in written.polled if polled.consumer == "reader"]
        self.tell(f"{len(transactions)} transactions have ended, {len(final)} records are committed")
        anomalies = [*torn(transactions, {polled.value for polled in final})]
        anomalies += self._compare_copies(verdict, written, final)
        for reader in self._readers:
            reader.stop()
            if reader.fault:
                verdict.anomalies.append(f"CLIENT_FAULT {reader.name}: {reader.fault}")
        anomalies += [each for topic in (TOPIC, _COPIES, _JAVA_COPIES) for each in judge(self.histories[topic])]
        verdict.anomalies += map(str, anomalies)
        for topic in (TOPIC, _COPIES):
            of_topic = {tp: homes for tp, homes in partitions.items() if tp.topic == topic}
            verdict.anomalies += self.replica_differences(of_topic, self.histories[topic])
        verdict.records = len(written.acknowledged)
        verdict.transactions = sum(each.outcome is Outcome.COMMITTED for each in transactions)
        self.keep_evidence(verdict, written, anomalies, partitions)

    @staticmethod
    def _end(clients: Sequence[TransactionalClient], verdict: Verdict) -> list[Transaction]:
        for client in clients:
            client.begin_stop()
        transactions: list[Transaction] = []
        for client in clients:
            client.stop()
            verdict.anomalies += [f"CLIENT_FAULT {fault}" for fault in client.faults]
            transactions += client.transactions()
        return transactions

    def _compare_copies(self, verdict: Verdict, written: History, final: Sequence[Polled]) -> list[Anomaly]:
        if not self.plan.copiers:
            self._stop_keeper()
            return []
        source = _values([polled for polled in final if polled.partition.topic == TOPIC])
        expected = {_COPIES: source, _JAVA_COPIES: {0: source.get(0, [])}}
        self._await_copies(expected)
        self._stop_keeper()
        self._end(self._copiers, verdict)
        anomalies: list[Anomaly] = []
        for topic, values in expected.items():
            history, tps = self.histories[topic], self._partitions_of(topic)
            history.sent = written.sent
            verdict.anomalies += self._hanging(tps)
            verdict.anomalies += read_everything(self.cluster.bootstrap, tps, history)
            copies = [polled for polled in history.polled if polled.consumer == "reader"]
            self.tell(f"{len(copies)} records are in {topic}")
            anomalies += copy_faults(values, _values(copies), topic)
        return anomalies

    def _await_copies(self, expected: Mapping[str, Mapping[int, Sequence[str]]]) -> None:
        """A client may hang: librdkafka's `send_offsets_to_transaction` has waited for minutes, long after its timeout,
        for a coordinator that had moved. A successor takes over then, as an operator would have it."""

        def is_whole() -> bool:
            return all(self._seen(topic) >= _count(values) for topic, values in expected.items())

        with self._clients_lock:
            self._kill_copiers("have a successor", former=True)
        for _ in range(_COPY_ATTEMPTS):
            if await_condition(is_whole, _COPY_S_MAX):
                return
            with self._clients_lock:
                self._kill_copiers("copies are not whole", former=False)

    def _kill_copiers(self, why: str, *, former: bool) -> None:
        for client in self._copiers:
            for life in client.lives[:-1] if former else client.lives[-1:]:
                if life.process.poll() is None:
                    self.tell(f"{why}: kill {client.kill(life)}")

    def _seen(self, topic: str) -> int:
        return sum(polled.consumer != "reader" for polled in self.histories[topic].polled)

    def _hanging(self, tps: Sequence[TopicPartition]) -> list[str]:
        """Partitions whose last stable offset stays behind, though no transaction can be under way any more."""
        open_ones: dict[TopicPartition, tuple[int, int]] = {}
        with ClusterClient(self.cluster.bootstrap, client_id="judge", timeout_ms=10_000) as client:

            def is_stable() -> bool:
                times = dict.fromkeys(tps, LATEST)
                try:
                    stable = list_offsets(client, times, IsolationLevel.READ_COMMITTED)
                    ends = list_offsets(client, times)
                except (KafkaError, ConnectionFailed):
                    return False
                open_ones.clear()
                pairs = {tp: (stable[tp].offset or 0, ends[tp].offset or 0) for tp in tps}
                open_ones.update({tp: pair for tp, pair in pairs.items() if pair[0] < pair[1]})
                return not open_ones

            began = time.monotonic()
            if await_condition(is_stable, _STABLE_S_MAX):
                self.tell(f"no open transactions in {tps[0].topic} after {time.monotonic() - began:.1f} s")
                return []
        return [f"HANGING {tp}: stable up to {stable} of {end}" for tp, (stable, end) in open_ones.items()]


def _values(polled: Sequence[Polled]) -> Mapping[int, list[str]]:
    """By partition, in the order of offsets."""
    found: dict[int, list[str]] = defaultdict(list)
    for each in sorted(polled, key=lambda each: (each.partition.partition, each.offset)):
        found[each.partition.partition].append(each.value)
    return found


def _count(values: Mapping[int, Sequence[str]]) -> int:
    return sum(len(each) for each in values.values())
