"""Application of changed configurations: to open logs, to the broker itself, to the controller."""

import threading

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.config.keys import DYNAMIC_ONLY_KEYS
from odradek.base.config.live_config import LiveConfig
from odradek.broker.admin.entity_configs import EntityConfigs
from odradek.broker.admin.quota_entities import addresses_of, quotas_in
from odradek.broker.controller.controller import Controller
from odradek.broker.controller.core.events import TopicConfigsChanged
from odradek.broker.quotas.client_quotas import ClientQuotas
from odradek.broker.quotas.core.quota_table import desanitized, sanitized
from odradek.broker.replication_start import Replication
from odradek.broker.security.credential_store import KnownCredentials
from odradek.broker.zk.known_configs import KnownConfigs
from odradek.broker.zk.znodes import DEFAULT_ENTITY


class ConfigApplication:
    def __init__(
        self,
        broker_id: int,
        live: LiveConfig,
        known: KnownConfigs,
        configs: EntityConfigs,
        replication: Replication,
        controller: Controller,
        quotas: ClientQuotas,
        credentials: KnownCredentials,
    ) -> None:
        self._broker_id = broker_id
        self._live = live
        self._known = known
        self._configs = configs
        self._replicas = replication.replicas
        self._roles = replication.roles
        self._moves = replication.moves
        self._controller = controller
        self._quotas = quotas
        self._credentials = credentials
        self._applying = threading.Lock()  # otherwise an older state could be adopted last
        live.on_change.append(self._apply_defaults)

    def apply_all(self) -> None:
        """Apply the dynamic configs when the broker starts."""
        self.apply_to_broker()
        self.apply_quotas()
        self.apply_credentials()
        self.apply_address_rates()

    def apply(self, entity_type: str, name: str) -> None:
        match entity_type:
            case "topics":
                self._apply_to_topic(name)
                self._controller.submit(TopicConfigsChanged(frozenset({name})))
            case "brokers" if name in (str(self._broker_id), DEFAULT_ENTITY):
                self.apply_to_broker()
            case "users" | "clients":
                self.apply_quotas()
                self.apply_credentials()
            case "ips":
                self.apply_address_rates()

    def apply_address_rates(self) -> None:
        """Connections a second, of each address that is named and of the others."""
        with self._applying:
            rates = {
                name: rate
                for name, config in self._known.all("ips").items()
                if (rate := quotas_in("ips", config).get("connection_creation_rate")) is not None
            }
            default = rates.pop(DEFAULT_ENTITY, None)
            addresses = addresses_of(map(desanitized, rates))
            limits = {address: rates[sanitized(name)] for name, found in addresses.items() for address in found}
            self._quotas.addresses.set(limits, default)

    def apply_quotas(self) -> None:
        with self._applying:
            self._quotas.set_limits(self._known.all("users"), self._known.all("clients"))

    def apply_credentials(self) -> None:
        with self._applying:
            self._credentials.set_users(self._known.all("users"))

    def apply_to_broker(self) -> None:
        """Apply the current overrides of this broker and of all brokers."""
        with self._applying:
            self._live.adopt(self._known.of_broker(str(self._broker_id)), self._known.of_broker(DEFAULT_ENTITY))
        self._replicas.quotas.set_rates(
            leader=self._rate("leader.replication.throttled.rate"),
            follower=self._rate("follower.replication.throttled.rate"),
        )
        self._moves.set_rate(self._rate("replica.alter.log.dirs.io.max.bytes.per.second"))

    def _apply_defaults(self, before: BrokerConfig, after: BrokerConfig) -> None:
        """Apply the broker's values as defaults of topics without overrides."""
        defaults = (before.topic_defaults, before.producer_id_expiration_ms)
        if defaults != (after.topic_defaults, after.producer_id_expiration_ms):
            for topic in {tp.topic for tp in self._replicas.partitions.copy()}:
                self._apply_to_topic(topic)

    def _apply_to_topic(self, topic: str) -> None:
        tps = [tp for tp in self._replicas.partitions.copy() if tp.topic == topic]
        self._roles.update_config(tps, self._configs.effective(topic))

    def _rate(self, key: str) -> int | None:
        """The broker's own, else that of all brokers."""
        text = self._live.own.get(key, self._live.of_all.get(key))
        if text is None:
            return None
        rate = DYNAMIC_ONLY_KEYS[key].parse(text)
        assert isinstance(rate, int)
        return rate
