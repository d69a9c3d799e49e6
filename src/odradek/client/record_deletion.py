"""Deletion of the oldest records of partitions: each leader deletes them and returns its new log start offset."""

from collections.abc import Mapping

from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.cluster_client import ClusterClient
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

HIGH_WATERMARK = -1


def delete_records(
    client: ClusterClient, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | KafkaError]:
    """Delete the records before these offsets; `HIGH_WATERMARK` deletes all of them. Return the new start of each log,
    or the error.
    """
    results: dict[TopicPartition, int | KafkaError] = {}
    for tp in before:
        try:
            results |= _delete(client, client.leaders([tp]), before)
        except KafkaError as error:
            results[tp] = error
    return results


def _delete(
    client: ClusterClient, leaders: Mapping[int, list[TopicPartition]], before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | KafkaError]:
    results: dict[TopicPartition, int | KafkaError] = {}
    for leader, partitions in leaders.items():
        topics = [
            DeleteRecordsTopic(
                name=tp.topic, partitions=[DeleteRecordsPartition(partition_index=tp.partition, offset=before[tp])]
            )
            for tp in partitions
        ]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=client.request_timeout_ms)
        for topic in client.ask_broker(leader, request, DeleteRecordsResponse).topics:
            for result in topic.partitions:
                tp = TopicPartition(topic.name, result.partition_index)
                results[tp] = _result(tp, ErrorCode(result.error_code), result.low_watermark)
    return results


def _result(tp: TopicPartition, code: ErrorCode, low_watermark: int) -> int | KafkaError:
    match code:
        case ErrorCode.NONE:
            return low_watermark
        case ErrorCode.OFFSET_OUT_OF_RANGE:
            return KafkaError(code, f"{tp} has no such offset; see: odradek offsets --topic {tp.topic}")
        case ErrorCode.POLICY_VIOLATION:
            return KafkaError(code, f"{tp} is compacted: its records go by cleanup.policy, not by offset")
        case _:
            return KafkaError(code, f"{tp}: {code.name}")
