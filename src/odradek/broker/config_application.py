"""Changes of configuration, applied where they matter: to open logs, to replication throttles, to the controller."""

from odradek.api.entity_configs import EntityConfigs
from odradek.base.config.keys import DYNAMIC_ONLY_KEYS
from odradek.base.errors import ConfigError
from odradek.base.logs import get_logger
from odradek.controller.controller import Controller
from odradek.controller.events import TopicConfigsChanged
from odradek.replication.directory_moves import DirectoryMoves
from odradek.replication.replica_manager import ReplicaManager
from odradek.zk.topic_configs import TopicConfigs
from odradek.zk.znodes import DEFAULT_ENTITY

log = get_logger(__name__)


class ConfigApplication:
    def __init__(
        self,
        broker_id: int,
        known: TopicConfigs,
        configs: EntityConfigs,
        replicas: ReplicaManager,
        moves: DirectoryMoves,
        controller: Controller,
    ) -> None:
        self._broker_id = broker_id
        self._known = known
        self._configs = configs
        self._replicas = replicas
        self._moves = moves
        self._controller = controller

    def apply(self, entity_type: str, name: str) -> None:
        if entity_type == "topics":
            self._apply_to_topic(name)
        elif name in (str(self._broker_id), DEFAULT_ENTITY):
            self.apply_to_broker()

    def _apply_to_topic(self, topic: str) -> None:
        tps = [tp for tp in self._replicas.partitions.copy() if tp.topic == topic]
        self._replicas.update_config(tps, self._configs.effective(topic))
        self._controller.submit(TopicConfigsChanged(frozenset({topic})))

    def apply_to_broker(self) -> None:
        self._replicas.quotas.set_rates(
            leader=self._rate("leader.replication.throttled.rate"),
            follower=self._rate("follower.replication.throttled.rate"),
        )
        self._moves.set_rate(self._rate("replica.alter.log.dirs.io.max.bytes.per.second"))

    def _rate(self, key: str) -> int | None:
        """The broker's own, else that of all brokers."""
        for name in (str(self._broker_id), DEFAULT_ENTITY):
            text = self._known.of_broker(name).get(key)
            if text is None:
                continue
            try:
                rate = DYNAMIC_ONLY_KEYS[key].parse(text)
                assert isinstance(rate, int)
                return rate
            except ConfigError as error:
                log.error("setting is ignored", error=str(error))
        return None
