"""One run of the judge: a cluster, foreign producers, faults, and then the verdict with everything that explains it."""

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from apache_kafka import broker_command
from chaos.clients import await_condition
from chaos.history import History
from chaos.judge import Anomaly, judge
from chaos.operations import ask_controller
from chaos.replica_files import differences
from odradek.apps.lab.cluster import ChaosCluster
from odradek.local.server_process import Launch
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

from .evidence import answers_in, explain, write_history
from .nemesis import HEAL_S_MAX, ForeignNemesis
from .plan import REPLICATION_FACTOR, TOPIC, Plan
from .producers import ForeignProducer, JavaProducer, LibrdkafkaProducer
from .reader import read_everything

_FIRST_JAVA: Final = 1000
_CLOSED = "Producer closed while send in progress"  # a record that the judge itself was about to send when it ended
_TOLD_MAX: Final = 40
_SMALL_BATCH: Final = 50


@dataclass(slots=True)
class Verdict:
    plan: Plan
    directory: Path
    records: int = 0
    transactions: int = 0
    """Committed ones."""
    faults: int = 0
    anomalies: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    """Errors that brokers answered to producers, as far as they trace them."""

    def kinds(self) -> Counter[str]:
        return Counter(line.split()[0] for line in self.anomalies)

    def row(self) -> str:
        """One line of the table of runs."""
        plan = self.plan
        what = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds().items())) or "none"
        flags = [name for name in ("births", "operations", "hasty", "transactional") if getattr(plan, name)]
        variant = " ".join([plan.timeouts, *flags])
        answers = ", ".join(f"{count} {answer}" for answer, count in self.answers.most_common())
        records = f"{self.records} in {self.transactions} transactions" if plan.transactional else str(self.records)
        cells = (plan.brokers, variant, plan.seed, f"{plan.seconds:.0f} s", records, self.faults, what, answers)
        return f"| {' | '.join(map(str, cells))} |"


class ForeignRun:
    """As a context the cluster runs; `judge` is called in it, when the nemesis is done."""

    def __init__(
        self,
        directory: Path,
        zookeeper: str,
        plan: Plan,
        *,
        kafka_lib: Path | None = None,
        environment: Mapping[str, str] | None = None,
        debug: str = "eos,msg",
    ) -> None:
        directory.mkdir(parents=True)
        self.plan = plan
        self.directory = directory
        self.topics = {TOPIC: plan.partitions}
        """Partitions of each topic, also of one whose creation was not answered."""
        self.producers: list[ForeignProducer] = []
        self.faults: list[str] = []
        self.troubles: list[str] = []
        self.kafka_lib = kafka_lib
        self._debug = debug
        self._began = time.time()
        launch: dict[int, Launch] = {}
        if plan.brokers == "kafka":
            assert kafka_lib is not None
            launch = dict.fromkeys(range(3), broker_command(kafka_lib))
        self.cluster = ChaosCluster(
            directory / "cluster", zookeeper, settings=plan.settings, environment=environment, launch=launch
        )

    def __enter__(self) -> Self:
        self.tell(f"plan {json.dumps(asdict(self.plan))}")
        self.cluster.__enter__()
        topic = CreatableTopic(name=TOPIC, num_partitions=self.plan.partitions, replication_factor=REPLICATION_FACTOR)
        ask_controller(self.cluster, CreateTopicsRequest(topics=[topic], timeout_ms=20_000))
        self.start_clients()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill_clients()
        self.cluster.__exit__(kind, error, trace)

    def tell(self, what: str) -> None:
        """Note what happens, for people who read it later."""
        now = time.time()
        moment = time.strftime("%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}"
        self.faults.append(f"{moment} {now - self._began:7.2f} {what}")
        with (self.directory / "faults.txt").open("a") as file:
            file.write(self.faults[-1] + "\n")

    # ---- clients

    def start_clients(self) -> None:
        for _ in range(self.plan.librdkafka):
            self.add_librdkafka()
        for _ in range(self.plan.java):
            self.add_java(TOPIC)

    def kill_clients(self) -> None:
        for producer in self.producers:
            producer.kill()

    def strike_client(self, chance: random.Random) -> None:
        """Kill or freeze one of the clients."""
        raise NotImplementedError

    def add_librdkafka(self) -> ForeignProducer:
        """Every other one makes small batches: queued records are then many batches in flight, not one that waits."""
        settings: dict[str, Any] = {"debug": self._debug, "log_level": 7} if self._debug else {"log_level": 0}
        name = f"p{len(self.producers)}"
        if len(self.producers) % 2:
            settings["batch.num.messages"] = _SMALL_BATCH
        producer = LibrdkafkaProducer(
            name,
            self.directory,
            self.cluster.bootstrap,
            rate=self.plan.rate,
            settings=settings,
            niceness=self.plan.niceness,
        )
        self.producers.append(producer)
        for topic, partitions in self.topics.items():
            producer.write_to(topic, partitions)
        return producer

    def add_java(self, topic: str) -> ForeignProducer:
        assert self.kafka_lib is not None
        name = str(_FIRST_JAVA + len(self.producers))
        producer = JavaProducer(
            name, self.directory, self.cluster.bootstrap, self.kafka_lib, topic=topic, rate=self.plan.rate
        )
        self.producers.append(producer)
        return producer

    def write_to(self, topic: str, partitions: int, burst: int = 0) -> None:
        """Every producer that can writes to this topic too; with 0 partitions, none any more."""
        if partitions:
            self.topics[topic] = partitions
        for producer in self.producers:
            producer.write_to(topic, partitions, burst)

    # ---- the cluster

    def await_in_sync(self, limit_s: float) -> None:
        """Until every live broker names the same leader and a full ISR for every partition."""
        began = time.monotonic()
        if not await_condition(self._is_in_sync, limit_s):
            raise TimeoutError(f"the replicas are not in sync after {limit_s:.0f} s")
        self.tell(f"in sync after {time.monotonic() - began:.1f} s")

    def _is_in_sync(self) -> bool:
        answers = [broker.metadata() for broker in self.cluster.brokers]
        if any(answer is None or len(answer.brokers) < len(answers) for answer in answers):
            return False
        views = [
            {
                (topic.name, p.partition_index): (p.leader_id, p.leader_epoch, frozenset(p.isr_nodes))
                for topic in answer.topics
                for p in topic.partitions
                if p.leader_id >= 0 and len(p.isr_nodes) == len(p.replica_nodes)
            }
            for answer in answers
            if answer is not None
        ]
        counts = {sum(len(topic.partitions) for topic in answer.topics) for answer in answers if answer is not None}
        return all(view == views[0] for view in views) and counts == {len(views[0])}

    def partitions(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the metadata of the first broker that answers."""
        metadata = self.cluster.brokers[0].metadata()
        assert metadata is not None
        return {
            TopicPartition(topic.name or "", p.partition_index): tuple(p.replica_nodes)
            for topic in metadata.topics
            if not topic.is_internal
            for p in topic.partitions
        }

    # ---- the end

    def rage(self) -> None:
        try:
            ForeignNemesis(self).rage()
        except TimeoutError as error:  # what was acknowledged until then is judged all the same
            self.troubles.append(f"NOT_HEALED {error}")

    def judge(self) -> Verdict:
        """Heal, stop the producers, read everything, compare."""
        verdict = Verdict(self.plan, self.directory)
        verdict.faults = sum(" kill " in line or " stop " in line or " freeze " in line for line in self.faults)
        try:
            self._heal()
        except TimeoutError as error:
            self.troubles.append(f"NOT_HEALED {error}")
        verdict.anomalies += self.troubles
        self.compare(verdict)
        return verdict

    def compare(self, verdict: Verdict) -> None:
        history = History()
        for producer in self.producers:
            producer.begin_stop()
        for producer in self.producers:
            producer.stop()
            producer.tell(history)
            if producer.fault:
                verdict.anomalies.append(f"CLIENT_FAULT {producer.fault}")
        self.tell(f"producers have ended, {len(history.acknowledged)} records are acknowledged")
        partitions = self.partitions()
        verdict.anomalies += read_everything(self.cluster.bootstrap, list(partitions), history)
        self.tell(f"{len(history.polled)} records are read")
        anomalies = judge(history)
        verdict.anomalies += map(str, anomalies)
        failed = [each for each in history.failed if _CLOSED not in str(each.error)]
        verdict.anomalies += [f"FAILED {each.sent.value}: {each.error}" for each in failed]
        verdict.anomalies += self.replica_differences(partitions, history)
        verdict.records = len(history.acknowledged)
        self.keep_evidence(verdict, history, anomalies, partitions)

    def keep_evidence(
        self,
        verdict: Verdict,
        history: History,
        anomalies: Sequence[Anomaly],
        partitions: Mapping[TopicPartition, tuple[int, ...]],
    ) -> None:
        verdict.answers = answers_in(self.directory)
        if verdict.anomalies:
            write_history(history, self.directory / "history.jsonl")
            explained = explain(anomalies, history, self.cluster, partitions)
            summary = [*self.faults, "", verdict.row(), "", *verdict.anomalies[:_TOLD_MAX], "", *explained]
            (self.directory / "summary.txt").write_text("\n".join(summary) + "\n")

    def _heal(self) -> None:
        for broker in self.cluster.brokers:
            broker.resume()
        self.cluster.start(*[broker.id for broker in self.cluster.brokers if broker.pid is None])
        self.await_in_sync(HEAL_S_MAX)

    def replica_differences(self, partitions: Mapping[TopicPartition, tuple[int, ...]], history: History) -> list[str]:
        ends: dict[TopicPartition, int] = {}
        for polled in history.polled:
            ends[polled.partition] = max(ends.get(polled.partition, 0), polled.offset + 1)
        found = []
        for tp, homes in partitions.items():
            replicas = {id: self.cluster.brokers[id].log_dir / str(tp) for id in homes}
            found += [f"REPLICAS {line}" for line in differences(replicas, tp, ends.get(tp, 0))]
        return found


def keep_or_remove(verdict: Verdict) -> None:
    """Keep the evidence of a failure; a clean run needs none."""
    if not verdict.anomalies:
        with suppress(OSError):
            shutil.rmtree(verdict.directory)
