"""Rules of librdkafka's producer: implicit acknowledgement, and what is sent again."""

from odradek.model.topology import TopicPartition
from odradek.sim.clients.librdkafka_producer import LibrdkafkaBatch, PartitionQueue

TP = TopicPartition("orders", 0)


def queue_with(*batches: LibrdkafkaBatch) -> PartitionQueue:
    queue = PartitionQueue(TP)
    queue.unacknowledged = list(batches)
    return queue


def test_an_acknowledgement_is_one_of_all_before() -> None:
    first, second, third = LibrdkafkaBatch(0, 2), LibrdkafkaBatch(2, 1), LibrdkafkaBatch(3, 3)
    queue = queue_with(first, second, third)
    queue.acknowledge(second)
    assert queue.acknowledged == 3
    assert queue.unacknowledged == [third]
    queue.acknowledge(first)
    assert queue.acknowledged == 3, "an answer that comes late takes nothing back"


def test_what_is_not_in_flight_waits_in_order() -> None:
    first, second, third = LibrdkafkaBatch(0, 2), LibrdkafkaBatch(2, 1), LibrdkafkaBatch(3, 3)
    queue = queue_with(first, second, third)
    queue.in_flight = [second]
    assert queue.waiting() == [first, third]
