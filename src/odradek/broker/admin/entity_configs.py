"""Configs of topics, brokers and clients over their defaults: read and replaced in ZooKeeper, by any broker.

Every broker learns of a change by a notification; the broker that makes it applies it before it answers.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from odradek.base.config.live_config import LiveConfig
from odradek.base.config.topic_config import TopicConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.zk.known_configs import KnownConfigs
from odradek.broker.zk.session import ZkUnavailable
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes import DEFAULT_ENTITY
from odradek.model.metadata_image import MetadataCache


class EntityConfigs:
    def __init__(self, live: LiveConfig, store: ZkStore, known: KnownConfigs, metadata: MetadataCache) -> None:
        self._live = live
        self._store = store
        self._known = known
        self._metadata = metadata

    def of_topic(self, topic: str) -> dict[str, str]:
        """KafkaError UNKNOWN_TOPIC_OR_PARTITION for one that isn't there."""
        found = self.of_topics([topic])
        if topic not in found:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        return found[topic]

    def of_topics(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the overrides of the existing topics, read in one go."""
        known = [topic for topic in topics if topic in self._metadata.image.topics]
        with _answered_in_time():
            found = self._store.configs.load_configs("topics", known)
        return {topic: found.get(topic, {}) for topic in known}

    def set_topic(self, topic: str, overrides: Mapping[str, str]) -> None:
        self.replace("topics", topic, overrides)

    def effective(self, topic: str) -> TopicConfig:
        """Return the effective configuration of the topic, as far as this broker knows; it reads nothing."""
        return TopicConfig.of(self._live.current, self._known.of(topic))

    def look_up(self, topics: Iterable[str]) -> None:
        """Read the overrides of topics that are new here, whose creation leaves no notice."""
        self._known.look_up(topics)

    def of_broker(self, name: str) -> dict[str, str]:
        """Dynamic settings of one broker, or with an empty name of all."""
        return self._live.passwords.decoded(self.load("brokers", name or DEFAULT_ENTITY))

    def set_broker(self, name: str, values: Mapping[str, str]) -> None:
        self.replace("brokers", name or DEFAULT_ENTITY, self._live.passwords.encoded(values))

    def load(self, entity_type: str, name: str) -> dict[str, str]:
        """Return the overrides of an entity, by its type and its name below /config."""
        with _answered_in_time():
            return self._store.configs.load_config(entity_type, name)

    def load_all(self, entity_type: str) -> dict[str, dict[str, str]]:
        with _answered_in_time():
            return self._store.configs.load_configs(entity_type)

    def replace(self, entity_type: str, name: str, values: Mapping[str, str]) -> None:
        with _answered_in_time():
            self._store.configs.set_config(entity_type, name, values)
        self._known.read_now(entity_type, name)


@contextmanager
def _answered_in_time() -> Iterator[None]:
    try:
        yield
    except ZkUnavailable as error:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
