"""Rules of the Java producer: which batch is sent next."""

from random import Random

from odradek.model.topology import TopicPartition
from odradek.sim.clients.conversation import IN_FLIGHT_MAX
from odradek.sim.clients.java_producer import PartitionBatches

TP = TopicPartition("orders", 0)


def sent(partition: PartitionBatches, count: int) -> list[object]:
    return [partition.next_batch(Random(1), only_retries=False) for _ in range(count)]


def test_five_batches_are_in_flight() -> None:
    partition = PartitionBatches(TP)
    assert None not in sent(partition, IN_FLIGHT_MAX)
    assert sent(partition, 1) == [None]


def test_a_batch_that_is_to_be_sent_again_waits_until_it_is_the_first() -> None:
    partition = PartitionBatches(TP)
    first, second = sent(partition, 2)
    partition.retried.append(second)
    assert sent(partition, 1) == [None], "neither the second nor a new one"
    partition.retried.append(first)
    assert sent(partition, 2) == [first, None]
    partition.unacknowledged.remove(first)
    assert sent(partition, 1) == [second]


def test_the_next_sequence_is_behind_the_last_acknowledged_one() -> None:
    partition = PartitionBatches(TP)
    assert partition.next_sequence_acknowledged == 0
    (batch,) = sent(partition, 1)
    partition.acknowledged.append(batch)
    assert partition.next_sequence_acknowledged == batch.count
