"""State that the screens share: the options of the console, its feeds, its permissions.

With logins each session has a console of its own, whose feeds connect with the user's credentials. Files of this
machine (journals, audit logs, status of pipelines) are shown to users who may describe the cluster.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from odradek.apps.console.access import Access
from odradek.apps.console.alert_log import AlertLog
from odradek.apps.console.changes import Change, Changes
from odradek.apps.console.feeds import Feed, Feeds
from odradek.apps.console.guard import Guard
from odradek.apps.console.markup import link
from odradek.apps.console.options import ConsoleOptions
from odradek.apps.console.rate_history import RateHistory
from odradek.apps.console.readings.audit import AuditReader, AuditState
from odradek.apps.console.readings.cluster import ClusterState, read_cluster
from odradek.apps.console.readings.coordination import CoordinationState, ZooKeeperReader
from odradek.apps.console.readings.groups import GroupDetail, GroupsState, known_lags, read_group, read_groups
from odradek.apps.console.readings.history import HistoryReader, HistoryState
from odradek.apps.console.readings.pipelines import PipelinesReader, PipelinesState
from odradek.apps.console.readings.records import Query
from odradek.apps.console.readings.rights import Rights, read_rights
from odradek.apps.console.readings.security import AclsState, UsersState, read_acls, read_certificates, read_users
from odradek.apps.console.readings.settings import TopicSettings, read_settings
from odradek.apps.console.readings.storage import StorageState, read_storage
from odradek.apps.console.readings.tail import TailState, read_tail
from odradek.apps.console.readings.topic import TopicDetail, read_topic
from odradek.apps.console.readings.traffic import TrafficState, read_traffic
from odradek.apps.console.readings.transactions import (
    TransactionDetail,
    TransactionsState,
    read_transaction,
    read_transactions,
)
from odradek.apps.console.reassigner import Reassigner, RunsState
from odradek.apps.console.views.alerts import NotedAlert, all_alerts
from odradek.base.errors import FatalError
from odradek.broker.recorder.rebalances import Rebalances
from odradek.client.cluster_client import ClusterClient
from odradek.client.quota_admin import Quotas, describe_quotas
from odradek.local.links.cuts import CutFrom
from odradek.model.acls import AclOperation

StateT = TypeVar("StateT")


class Machine(Protocol):
    """The brokers of this machine, for the laboratory: actions on their processes."""

    def processes(self) -> dict[int, str]:
        """Return the state of each broker's process: running, paused, stopped."""

    def kill(self, broker: int) -> None: ...

    def stop(self, broker: int) -> None: ...

    def start(self, broker: int) -> None: ...

    def pause(self, broker: int) -> None: ...

    def resume(self, broker: int) -> None: ...

    def can_be_cut(self, broker: int) -> bool: ...

    def cuts(self) -> Mapping[int, frozenset[CutFrom]]:
        """Isolated brokers, each with the parts that it can't reach."""

    def cut(self, broker: int, whom: Iterable[CutFrom]) -> None: ...

    def heal(self, broker: int) -> None: ...


@dataclass(slots=True)
class Console:
    options: ConsoleOptions
    access: Access
    feeds: Feeds
    changes: Changes
    guard: Guard
    reassigner: Reassigner
    machine: Machine | None = None
    user: str | None = None
    """The cluster user who is logged in."""
    cluster_name: str = ""
    """Name of this cluster, if there are several; empty: the first one."""
    first_cluster: str = ""
    topic_rates: RateHistory = field(default_factory=RateHistory)
    group_lags: RateHistory = field(default_factory=RateHistory)
    alert_log: AlertLog = field(default_factory=AlertLog)

    @property
    def rights(self) -> Feed[Rights]:
        return self.feeds.feed("rights", read_rights, 2_000)

    def address(self, *parts: str, **query: object) -> str:
        """Return the address of a page of this cluster: where there are several, it names the cluster."""
        return link(*parts, **query, cluster=self.chosen_cluster)

    @property
    def chosen_cluster(self) -> str:
        """Name of this cluster among several; empty if it is the only one."""
        return (self.cluster_name or self.first_cluster) if self.options.clusters else ""

    def require(self, operation: AclOperation, what: str) -> None:
        """Raise FatalError for a user without the right on the cluster. Waits for the brokers: only for threads."""
        if self.user is not None and operation not in self.rights.value():
            raise FatalError(f"{what} needs the right {operation.shown} on the cluster, which User:{self.user} lacks")

    @property
    def visible_changes(self) -> list[Change]:
        """Changes made through this console, youngest first; for users who may describe the cluster."""
        if self.user is None or AclOperation.DESCRIBE in (self.rights.want().value or ()):
            return self.changes.latest
        return []

    @property
    def cluster(self) -> Feed[ClusterState]:
        return self.feeds.feed("cluster", read_cluster, 400, trusted=self._controller)

    @property
    def storage(self) -> Feed[StorageState]:
        return self.feeds.feed("storage", read_storage, 2_000)

    @property
    def traffic(self) -> Feed[TrafficState]:
        def read(client: ClusterClient, before: TrafficState | None) -> TrafficState:
            state = read_traffic(client, before, self.cluster.value().topics)
            self.topic_rates.note(state.at_ms, {name: rates[-1] for name, rates in state.topic_rates.items() if rates})
            return state

        return self.feeds.feed("traffic", read, 700)

    @property
    def alerts(self) -> Feed[tuple[NotedAlert, ...]]:
        """Alerts by the readings of the Cluster screen, as far as they were made."""

        def read(client: ClusterClient, before: tuple[NotedAlert, ...] | None) -> tuple[NotedAlert, ...]:
            now_ms = self.feeds.clock.now_ms()
            try:
                cluster = self.cluster.value()
            except FatalError:
                cluster = None
            found = all_alerts(
                cluster,
                self.settings.want().value,
                self.storage.latest(),
                self.coordination.latest(),
                self.certificates.latest(),
                now_ms,
            )
            self.alert_log.note(now_ms, *found)
            return self.alert_log.shown

        return self.feeds.feed("alerts", read, 1_000)

    @property
    def settings(self) -> Feed[TopicSettings]:
        def read(client: ClusterClient, before: TopicSettings | None) -> TopicSettings:
            return read_settings(client, self.cluster.value().topics)

        return self.feeds.feed("settings", read, 3_000)

    @property
    def coordination(self) -> Feed[CoordinationState]:
        reader = ZooKeeperReader(self.options.zookeeper)
        return self.feeds.feed("zookeeper", reader.read, 500, reader.close)

    def _controller(self) -> int | None:
        """The controller according to ZooKeeper: a broker that is cut off still names the former one."""
        state = self.coordination.want().value
        return None if state is None else state.controller

    def topic(self, name: str) -> Feed[TopicDetail]:
        def read(client: ClusterClient, before: TopicDetail | None) -> TopicDetail:
            return read_topic(client, before, name)

        return self.feeds.feed(("topic", name), read, 500, trusted=self._controller)

    def tail(self, name: str, query: Query) -> Feed[TailState]:
        """`name`: of the query, as the address of the page has it."""

        def read(client: ClusterClient, before: TailState | None) -> TailState:
            return read_tail(client, before, query)

        return self.feeds.feed(("tail", name), read, 400)

    @property
    def groups(self) -> Feed[GroupsState]:
        def read(client: ClusterClient, before: GroupsState | None) -> GroupsState:
            state = read_groups(client, before)
            self.group_lags.note(self.feeds.clock.now_ms(), known_lags(state))
            return state

        return self.feeds.feed("groups", read, 500)

    @property
    def rebalances(self) -> Feed[Rebalances]:
        def read(client: ClusterClient, before: Rebalances | None) -> Rebalances:
            self.require(AclOperation.DESCRIBE, "The journal of rebalances")
            known = before or Rebalances(*self.options.journal_places)
            known.read()
            return known

        return self.feeds.feed("rebalances", read, 500)

    def group(self, name: str) -> Feed[GroupDetail]:
        def read(client: ClusterClient, before: GroupDetail | None) -> GroupDetail:
            return read_group(client, before, name)

        return self.feeds.feed(("group", name), read, 500)

    @property
    def transactions(self) -> Feed[TransactionsState]:
        return self.feeds.feed("transactions", read_transactions, 700)

    def transaction(self, name: str) -> Feed[TransactionDetail]:
        def read(client: ClusterClient, before: TransactionDetail | None) -> TransactionDetail:
            return read_transaction(client, before, name)

        return self.feeds.feed(("transaction", name), read, 700)

    @property
    def runs(self) -> Feed[RunsState]:
        return self.feeds.feed("runs", self.reassigner.read, 500)

    @property
    def history(self) -> Feed[HistoryState]:
        return self._feed_of_files("history", "History", HistoryReader(self.options.journal_places).read, 500)

    @property
    def audit(self) -> Feed[AuditState]:
        return self._feed_of_files("audit", "The audit log", AuditReader(self.options.journal_places).read, 1_000)

    def _feed_of_files(
        self, name: str, title: str, read: Callable[[ClusterClient, StateT | None], StateT], every_ms: int
    ) -> Feed[StateT]:
        """Feed of files of the machine, for users who may describe the cluster."""

        def permitted(client: ClusterClient, before: StateT | None) -> StateT:
            self.require(AclOperation.DESCRIBE, title)
            return read(client, before)

        return self.feeds.feed(name, permitted, every_ms)

    @property
    def users(self) -> Feed[UsersState]:
        return self.feeds.feed("users", read_users, 1_000)

    @property
    def quotas(self) -> Feed[tuple[Quotas, ...]]:
        def read(client: ClusterClient, before: tuple[Quotas, ...] | None) -> tuple[Quotas, ...]:
            return tuple(describe_quotas(client, {}, strict=False))

        return self.feeds.feed("quotas", read, 1_000)

    @property
    def acls(self) -> Feed[AclsState]:
        return self.feeds.feed("acls", read_acls, 1_000)

    @property
    def certificates(self) -> Feed[Mapping[int, datetime]]:
        return self.feeds.feed("certificates", read_certificates, 60_000)

    @property
    def pipelines(self) -> Feed[PipelinesState]:
        return self._feed_of_files(
            "pipelines", "The status of pipelines", PipelinesReader(self.options.projects, self.options.data).read, 700
        )
