"""A cluster on one machine: the processes that `odradek up` starts, and the directory that keeps them.

    DIR/zookeeper/                     the coordination server, unless another one is used
    DIR/broker-N/server.properties     what the broker was started with; edits survive the next `up`
    DIR/broker-N/logs/                 its data
    DIR/broker-N/broker.log, .pid      its output and its process
    DIR/console.log, .pid              the web console
    DIR/pipelines                      the pipeline projects that it shows
    DIR/security/, *.properties        with --secure: certificates, and files for clients
    DIR/links/                         with --lab: the relay between the brokers, and between them and ZooKeeper

Everything is found again through the directory, so any later command may stop, crash or restart a part of it. Used by
the lifecycle commands and by the pytest plugin.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from odradek.base.errors import FatalError
from odradek.local.cluster_security import ClusterSecurity
from odradek.local.console_process import LocalConsole
from odradek.local.coordinators import CoordinatorKind, LocalCoordinator
from odradek.local.links.cuts import CutFrom
from odradek.local.links.local_links import LocalLinks
from odradek.local.local_broker import DEFAULT_PORT, LocalBroker
from odradek.local.local_settings import SettingChanges, checked, local_defaults, outgrown, remarks, shared_settings
from odradek.local.zookeeper_server import EmbeddedZooKeeper, port_is_taken

_UNKNOWN_ZOOKEEPER = "127.0.0.1:2181"  # stands for the embedded one before it has a port
_METRICS_PORTS_AFTER = 100
_PORT_MAX = 65_535


def _metrics_settings(port: int) -> dict[str, str]:
    return {} if port > _PORT_MAX or port_is_taken(port) else {"odradek.metrics.port": str(port)}


def _remarks(planned: Mapping[LocalBroker, Mapping[str, str]], changes: SettingChanges) -> list[str]:
    """Check the settings of brokers; return sentences about ignored ones, each once."""
    found: dict[str, None] = {}
    for broker, properties in planned.items():
        before = broker.kept_properties()
        config = checked(before, properties, broker.properties_file)
        found |= dict.fromkeys(remarks(config, changes.given))
        found |= dict.fromkeys(f"{key} was not set" for key in sorted(changes.removed - before.keys()))
    return list(found)


@contextmanager
def _taken_back_on_failure(brokers: Sequence[LocalBroker]) -> Iterator[None]:
    try:
        yield
    except (FatalError, OSError):
        for broker in brokers:
            broker.stop()
            broker.restore()
        raise


class LocalCluster:
    def __init__(self, data: Path) -> None:
        self.data = data.resolve()  # one name for each directory: processes are known by it
        self._coordinator = LocalCoordinator(self.data / "zookeeper")
        self.console = LocalConsole(self.data)
        self.links = LocalLinks(self.data)
        self.security = ClusterSecurity(self.data)

    @property
    def zookeeper(self) -> EmbeddedZooKeeper:
        """The coordination server of this directory."""
        return self._coordinator.server

    @property
    def coordinator(self) -> CoordinatorKind | None:
        """The kind of it; None before it was ever started."""
        return self._coordinator.kind

    @property
    def brokers(self) -> list[LocalBroker]:
        """Every broker that was ever started here, by id."""
        names = [path.parent.name.removeprefix("broker-") for path in self.data.glob("broker-*/server.properties")]
        return [self._broker(broker_id) for broker_id in sorted(int(name) for name in names if name.isdecimal())]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join("{}:{}".format(*broker.address) for broker in self.brokers)

    @property
    def running(self) -> bool:
        return self.zookeeper.pid is not None or any(broker.pid is not None for broker in self.brokers)

    def broker(self, broker_id: int) -> LocalBroker:
        known = [broker.id for broker in self.brokers]
        if broker_id not in known:
            there = f"there are: {', '.join(map(str, known))}" if known else "start one with: odradek up"
            raise FatalError(f"there is no broker {broker_id} in {self.data}; {there}")
        return self._broker(broker_id)

    def start(
        self,
        zookeeper: str | None,
        port: int | None,
        settings: Mapping[str, str],
        brokers: int | None = None,
        *,
        coordinator: CoordinatorKind | None = None,
        unset: Collection[str] = (),
        metrics: bool = False,
        lab: bool = False,
        secure: bool = False,
        remark: Callable[[str], None] = lambda text: None,
    ) -> None:
        """ZooKeeper, unless one is given, then the brokers, on consecutive ports; returns when all of them serve.

        Without a number: as many as there were. Those that run already stay as they are. `coordinator`: the kind of
        coordination server. `unset`: earlier settings that are taken back. `secure`: with TLS and users, see
        `cluster_security`; it stays so. `metrics`: new ones serve them, at their port + 100. `lab`: brokers can be cut
        off, unless some run that can't. Settings that can't be raise ConfigError before anything is written; after a
        start that fails, server.properties is as it was. `remark` hears of settings that are ignored.
        """
        known = {broker.id for broker in self.brokers}
        if brokers is not None and brokers < len(known):
            remark(f"{self.data} has {len(known)} brokers, and all of them start")
        secure = self._is_secure(wanted=secure, lab=lab)
        wanted = [self._broker(broker_id) for broker_id in range(max(brokers or 1, len(known)))]
        changes = SettingChanges(settings, frozenset(unset))
        changes.check_for(len(wanted))
        self._coordinator.refuse_other(coordinator)
        first = self._first_port() if port is None else port
        ports = {b.id: first + b.id for b in wanted if first is not None and (port is not None or b.id not in known)}
        running = [broker for broker in wanted if broker.pid is not None]
        if changed := [b.id for b in running if not b.is_configured(zookeeper, ports.get(b.id), changes)]:
            raise FatalError(
                f"broker {changed[0]} of {self.data} is already running and keeps its configuration: to change it, "
                f"stop it first with: odradek down --data {self.data}"
            )
        resting = [broker for broker in wanted if broker not in running]
        if zookeeper is None and coordinator is None:
            zookeeper = self._earlier_ensemble()
        planned = self._planned(resting, len(wanted), zookeeper, ports, changes, secure=secure, metrics=metrics)
        for text in _remarks(planned, changes):
            remark(text)
        own = zookeeper is None
        if resting and own:
            zookeeper = self._coordinator.spawn(coordinator).connect
        # Either all can be cut off or none: those who can talk to each other at another listener than those who can't.
        linked = running[0].is_linked if running else lab
        if resting and linked:
            self.links.plan(zookeeper or "", [broker.id for broker in resting])
            self.links.start()
        with _taken_back_on_failure(resting):
            for broker, properties in planned.items():
                broker.configure({**properties, "zookeeper.connect": zookeeper or ""}, linked=linked)
            self._start_all(wanted, resting, secure=secure, own=own)

    def _planned(
        self,
        resting: Sequence[LocalBroker],
        count: int,
        zookeeper: str | None,
        ports: Mapping[int, int],
        changes: SettingChanges,
        *,
        secure: bool,
        metrics: bool,
    ) -> dict[LocalBroker, dict[str, str]]:
        """Settings of each broker that is to be started, of `count` brokers in all."""
        kept = {broker.id: broker.kept_properties() for broker in self.brokers}
        gone = dict(zip(kept, outgrown(list(kept.values()), count), strict=True))
        first = next(iter(kept), None)
        shared = (
            {} if first is None else shared_settings({k: v for k, v in kept[first].items() if k not in gone[first]})
        )
        planned: dict[LocalBroker, dict[str, str]] = {}
        for broker in resting:
            defaults = local_defaults(count, is_new=not kept, is_alone=zookeeper is None)
            if broker.id not in kept:
                defaults |= shared
                if metrics:
                    port = ports.get(broker.id, DEFAULT_PORT + broker.id)
                    defaults |= _metrics_settings(port + _METRICS_PORTS_AFTER)
            planned[broker] = broker.wanted_properties(
                zookeeper or _UNKNOWN_ZOOKEEPER,
                ports.get(broker.id),
                defaults,
                changes,
                secure=secure,
                outgrown=gone.get(broker.id, ()),
            )
        return planned

    def _earlier_ensemble(self) -> str | None:
        """The ensemble that an earlier `up --zookeeper` gave; None where the directory has a server of its own."""
        if self.zookeeper.exists or not self.brokers:
            return None
        return self.brokers[0].kept_properties().get("zookeeper.connect")

    def _is_secure(self, *, wanted: bool, lab: bool) -> bool:
        if self.security.exists:
            if lab:
                raise FatalError("a secure cluster has no laboratory: --lab needs a cluster without --secure")
            return True
        if wanted and self.brokers:
            raise FatalError(
                f"the cluster in {self.data} was made without --secure: give another directory with --data, or secure "
                "it step by step, as docs/security.md says"
            )
        if wanted and lab:
            raise FatalError("--lab and --secure exclude each other")
        return wanted

    def _start_all(
        self, wanted: Sequence[LocalBroker], resting: Sequence[LocalBroker], *, secure: bool, own: bool
    ) -> None:
        """`own`: they use the coordination server of this directory."""
        if secure and resting:
            self.security.prepare([broker.id for broker in wanted], self.bootstrap_servers)
        for broker in resting:
            broker.start()
        if own and self.zookeeper.pid is not None:
            self.zookeeper.await_serving()
        try:
            for broker in wanted:
                broker.await_serving()
        except FatalError as error:
            if own and self.zookeeper.exists and self.zookeeper.pid is None:
                raise FatalError(f"the coordination server has stopped: {self.zookeeper.last_words()}") from error
            raise
        if secure and resting:
            if own:
                self.security.secure_coordination(self.zookeeper.connect)
            self.security.create_users(resting[0].id, resting[0].address)

    def _first_port(self) -> int | None:
        known = self.brokers
        return known[0].address[1] - known[0].id if known else None

    def start_broker(self, broker_id: int) -> LocalBroker:
        """One broker again, with the configuration that it has."""
        broker = self.broker(broker_id)
        if self.zookeeper.exists:
            self._coordinator.start()
        if broker.is_linked:
            self.links.start()
        broker.start()
        broker.await_serving()
        return broker

    def cut(self, broker_id: int, whom: Iterable[CutFrom]) -> None:
        if not self.broker(broker_id).is_linked:
            raise FatalError(
                f"broker {broker_id} reaches the others directly, so nothing can be cut: stop the cluster and start it "
                "with: odradek up --lab"
            )
        self.links.cut(broker_id, whom)

    def heal(self, broker_id: int) -> None:
        if broker_id not in self.links.cuts:
            raise FatalError(f"broker {broker_id} is not isolated")
        self.links.heal(broker_id)

    def stop(self) -> bool:
        """Stop the brokers before ZooKeeper, one after the other: each hands its partitions to the remaining ones.
        Whether anything had been running.
        """
        self.console.stop()
        stopped = [broker.stop() for broker in self.brokers]
        self.links.stop()
        return self.zookeeper.stop() or any(stopped)

    def _broker(self, broker_id: int) -> LocalBroker:
        return LocalBroker(self.data / f"broker-{broker_id}", broker_id, self.links, self.security)
