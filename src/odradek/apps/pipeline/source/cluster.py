"""Requests of the driver to the cluster: partitions, their first and end offsets, offsets by time."""

import re
from collections.abc import Iterable, Mapping
from time import monotonic, sleep
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from odradek.apps.pipeline.source.connection import Settings
from odradek.apps.pipeline.source.errors import OptionError, ReadFailed
from odradek.apps.pipeline.source.offsets import Offsets
from odradek.apps.pipeline.source.options import Boundary, ReadOptions, Subscription
from odradek.model.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

_TIMEOUT_S: Final = 60
_LEADER_PAUSE_S: Final = 0.2
_LEADER_CHANGED: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError._TRANSPORT,
        KafkaError._NOENT,  # no leader at the moment
    }
)
_FIRST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LAST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
# librdkafka refuses settings of another kind of client
_CONSUMER_ONLY: Final = (
    "isolation.level",
    "group.id",
    "fetch.",
    "max.partition.fetch.bytes",
    "check.crcs",
    "client.rack",
)


class Cluster:
    """One connection of the driver, made when it is first needed."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client: AdminClient | None = None

    def __getstate__(self) -> ReadOptions:
        return self._options  # the connection stays where it is

    def __setstate__(self, options: ReadOptions) -> None:
        self.__init__(options)  # type: ignore[misc]

    def partitions(self) -> list[TopicPartition]:
        """Return the present partitions of the query."""
        known = self._all_partitions()
        subscription = self._options.subscription
        if subscription.partitions:
            if missing := set(subscription.partitions) - set(known):
                raise ReadFailed(f"assign names partitions that don't exist: {_names(missing)}")
            return sorted(subscription.partitions)
        if subscription.pattern is None:
            topics = {partition.topic for partition in known}
            if missing_topics := [topic for topic in subscription.topics if topic not in topics]:
                raise ReadFailed(f"there is no topic {', '.join(missing_topics)}")
        return sorted(partition for partition in known if _matches(subscription, partition.topic))

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._offsets(dict.fromkeys(partitions, _FIRST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The high watermark, or with isolation.level=read_committed the last stable offset."""
        return self._offsets(dict.fromkeys(partitions, _LAST))

    def resolve(self, boundary: Boundary, partitions: list[TopicPartition], *, start: bool) -> Offsets:
        """Return the offset of the boundary for each partition."""
        if boundary.by_partition is None:
            assert boundary.everywhere is not None
            wanted = dict.fromkeys(partitions, boundary.everywhere)
        else:
            wanted = boundary.by_partition
            if set(wanted) != set(partitions):
                raise OptionError(
                    f"{boundary.option} must name every partition that is read, and no other: "
                    f"it names {_names(wanted) or 'none'}, read are {_names(partitions) or 'none'}"
                )
        if boundary.is_time:
            return self._at_times(boundary, wanted, start=start)
        return self._at_offsets(wanted)

    def _at_offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        specs = {EARLIEST: _FIRST, LATEST: _LAST}
        found = self._offsets({p: specs[offset] for p, offset in wanted.items() if offset in specs})
        return {p: found.get(p, offset) for p, offset in wanted.items()}

    def _at_times(self, boundary: Boundary, wanted: Mapping[TopicPartition, int], *, start: bool) -> Offsets:
        found = self._offsets({p: OffsetSpec.for_timestamp(time_ms) for p, time_ms in wanted.items()})
        too_late = [p for p, offset in found.items() if offset < 0]
        if too_late and start and not self._options.no_record_that_late_is_latest:
            raise ReadFailed(
                f"{boundary.option}: no record is that late in {_names(too_late)}. "
                'Set startingOffsetsByTimestampStrategy to "latest" to start such partitions at their end'
            )
        return found | self.latest(too_late)

    def _all_partitions(self) -> list[TopicPartition]:
        try:
            topics = self._connected().list_topics(timeout=_TIMEOUT_S).topics
        except KafkaException as error:
            raise ReadFailed(f"{self._where()} doesn't tell its topics: {error.args[0].str()}") from None
        return [TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions]

    def _offsets(self, specs: Mapping[TopicPartition, Any]) -> Offsets:
        """A partition whose leader has just changed is asked for again: librdkafka's answer is the error."""
        found: Offsets = {}
        deadline = monotonic() + _TIMEOUT_S
        while missing := {p: spec for p, spec in specs.items() if p not in found}:
            for partition, future in self._asked(missing).items():
                try:
                    found[partition] = future.result(_TIMEOUT_S).offset
                except KafkaException as error:
                    if error.args[0].code() not in _LEADER_CHANGED or monotonic() > deadline:
                        raise ReadFailed(
                            f"{self._where()} doesn't tell the offsets of {partition}: {error.args[0].str()}"
                        ) from None
            if len(found) < len(specs):
                sleep(_LEADER_PAUSE_S)
                self._all_partitions()  # gives the client the new leader
        return found

    def _asked(self, specs: Mapping[TopicPartition, Any]) -> dict[TopicPartition, Any]:
        isolation = IsolationLevel.READ_COMMITTED if self._options.read_committed else IsolationLevel.READ_UNCOMMITTED
        asked = {ClientPartition(p.topic, p.partition): spec for p, spec in specs.items()}
        answers = self._connected().list_offsets(asked, isolation_level=isolation, request_timeout=_TIMEOUT_S)
        return {TopicPartition(place.topic, place.partition): future for place, future in answers.items()}

    def _connected(self) -> AdminClient:
        if self._client is None:
            self._client = AdminClient(admin_settings(self._options.settings))
        return self._client

    def _where(self) -> str:
        return f"the cluster at {self._options.settings['bootstrap.servers']}"


def admin_settings(settings: Settings) -> Settings:
    return {name: value for name, value in settings.items() if not name.startswith(_CONSUMER_ONLY)}


def _matches(subscription: Subscription, topic: str) -> bool:
    if subscription.pattern is not None:
        return topic not in _INTERNAL_TOPICS and re.fullmatch(subscription.pattern, topic) is not None
    return topic in subscription.topics


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(str(partition) for partition in sorted(partitions))
