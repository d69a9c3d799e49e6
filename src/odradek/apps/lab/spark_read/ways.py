"""The ways from a topic into Spark that are compared, by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from odradek.apps.lab.spark_read.sessions import Session

CONNECTOR: Final = "connector"
OURS: Final = "odradek"
FILES: Final = "odradek-log"
CONNECTOR_ON_KAFKA: Final = "connector on Apache Kafka"
STREAM: Final = "stream: "
BATCHES: Final = 10


@dataclass(frozen=True, slots=True)
class Way:
    """`subscribe` is the option that takes the topic's name."""

    name: str
    session: Session
    format: str
    options: Mapping[str, str]
    subscribe: str = "subscribe"
    work: Path | None = None  # a stream's table and checkpoint; without it, a batch is read

    def go(self, topic: str, records: int) -> dict[str, Any]:
        options = {**self.options, self.subscribe: topic}
        order: dict[str, Any] = {"format": self.format, "options": options, "work": None}
        if self.work is not None:
            options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(records // BATCHES)}
            order["work"] = str(self.work)
        answer = self.session.ask(order)
        if answer["rows"] != records:
            raise SystemExit(f"{self.name} saw {answer['rows']:,} records of {records:,}")
        return answer


def reading_ways(own: Session, connector: Session | None, ours: str, kafka: str | None, files: Path) -> list[Way]:
    ways = [
        Way(OURS, own, "odradek", _brokers(ours)),
        Way(FILES, own, "odradek-log", {"path": str(files)}, subscribe="topics"),
    ]
    if connector and kafka:
        ways.append(Way(CONNECTOR, connector, "kafka", _brokers(ours)))
        ways.append(Way(CONNECTOR_ON_KAFKA, connector, "kafka", _brokers(kafka)))
    return ways


def streaming_ways(own: Session, connector: Session | None, ours: str, kafka: str | None, work: Path) -> list[Way]:
    ways = [Way(STREAM + OURS, own, "odradek", _brokers(ours), work=work)]
    if connector and kafka:
        ways.append(Way(STREAM + CONNECTOR, connector, "kafka", _brokers(ours), work=work))
        ways.append(Way(STREAM + CONNECTOR_ON_KAFKA, connector, "kafka", _brokers(kafka), work=work))
    return ways


def _brokers(bootstrap: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap}
