"""Logs of brokers, written by a test, and the history that looks at them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from odradek.broker.log.core.config import LogConfig
from odradek.broker.log.core.validation import BatchRules
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.model.topology import TopicPartition
from odradek.protocol.record_batch import build_batch
from odradek.protocol.records import Record
from odradek.sim.checkers.partition_history import PartitionHistory

TP = TopicPartition("orders", 0)


class Replicas:
    """Logs of brokers, and the history that looks at them."""

    def __init__(self, directory: Path) -> None:
        self.history = PartitionHistory("orders-0")
        self._logs = {n: PartitionLog.open(directory / f"{n}" / "orders-0", TP, LogConfig()) for n in (0, 1, 2)}

    def write(self, broker_id: int, value: str, epoch: int = 0) -> None:
        batch = memoryview(bytearray(build_batch([Record(0, 1, None, value.encode())])))
        self._logs[broker_id].append_as_leader(batch, leader_epoch=epoch, rules=BatchRules())

    def cut(self, broker_id: int, offset: int) -> None:
        self._logs[broker_id].truncate_to(offset)

    def look(self, broker_id: int, watermark: int, *, leads: bool = False, epoch: int = 0, alone: bool = False) -> None:
        log = self._logs[broker_id]
        replica: Any = SimpleNamespace(
            log=log, high_watermark=watermark, is_leader=leads, leader_epoch=epoch, is_under_min_isr=alone
        )
        self.history.check()
        self.history.check_log(broker_id, "a life", log, replica)

    def end(self) -> None:
        self.history.check_end(self._logs)
