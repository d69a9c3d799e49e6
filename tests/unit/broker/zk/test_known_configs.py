import queue
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from kazoo.protocol.connection import _SESSION_EXPIRED

from cut_proxy import CutProxy
from odradek.base.clock import SYSTEM_CLOCK
from odradek.broker.zk.known_configs import KnownConfigs
from odradek.broker.zk.registration import ensure_roots
from odradek.broker.zk.session import SessionEvent, ZkSession
from odradek.broker.zk.store import ZkStore
from odradek.broker.zk.znodes import ConfigChanges
from odradek.model.topology import ReplicaAssignment, TopicAssignment

OpenSession = Callable[..., ZkSession]
WAIT = 60


class Listening:
    """One broker's view of the configurations, wired to its session as a broker does."""

    def __init__(self, open_session: OpenSession, proxy: CutProxy) -> None:
        self.changes: queue.Queue[tuple[str, str]] = queue.Queue()
        self.events: queue.Queue[SessionEvent] = queue.Queue()
        self.configs: KnownConfigs | None = None
        self.session = open_session(self._session_changed, 60_000, on_znode=self._znode_changed, through=proxy)
        ensure_roots(self.session)
        self.configs = KnownConfigs(self.session, SYSTEM_CLOCK)
        self.fails_once = False

    def start(self) -> None:
        assert self.configs
        self.configs.start(self._changed)

    def _changed(self, entity_type: str, name: str) -> None:
        self.changes.put((entity_type, name))
        if self.fails_once:
            self.fails_once = False
            raise ValueError("can't")

    def _session_changed(self, event: SessionEvent) -> None:
        self.events.put(event)
        if event is SessionEvent.SESSION_RENEWED and self.configs:
            self.configs.refresh(everything=True)

    def _znode_changed(self, path: str) -> None:
        assert path == ConfigChanges.path
        if self.configs:
            self.configs.refresh()


@pytest.fixture
def listening(open_session: OpenSession, proxy: CutProxy) -> Iterator[Listening]:
    listening = Listening(open_session, proxy)
    yield listening
    listening.configs.stop()


@pytest.fixture
def other(listening: Listening, open_session: OpenSession) -> ZkStore:
    return ZkStore(open_session())


def test_what_was_set_before_and_what_is_set_later(listening: Listening, other: ZkStore) -> None:
    other.configs.set_config("topics", "orders", {"retention.ms": "1"})
    other.configs.set_config("brokers", "<default>", {"background.threads": "8"})
    configs = listening.configs
    listening.start()
    assert configs.of("orders") == {"retention.ms": "1"}
    assert configs.of_broker("<default>") == {"background.threads": "8"}
    assert configs.of("other") == configs.of_broker("0") == {}
    for value in ("2", "3"):
        other.configs.set_config("topics", "orders", {"retention.ms": value})
        assert listening.changes.get(timeout=WAIT) == ("topics", "orders")
        assert configs.of("orders") == {"retention.ms": value}
    other.configs.set_config("clients", "app", {"producer_byte_rate": "1"})
    assert listening.changes.get(timeout=WAIT) == ("clients", "app")


def test_a_change_during_a_cut_is_heard(listening: Listening, other: ZkStore, proxy: CutProxy) -> None:
    listening.start()
    proxy.cut()
    assert listening.events.get(timeout=WAIT) is SessionEvent.CONNECTION_LOST
    other.configs.set_config("topics", "orders", {"retention.ms": "2"})
    proxy.mend()
    assert listening.changes.get(timeout=WAIT) == ("topics", "orders")
    assert listening.configs.of("orders") == {"retention.ms": "2"}


def test_a_renewed_session_reads_everything(listening: Listening, other: ZkStore) -> None:
    listening.start()
    other.configs._access.put("/config/topics/orders", b'{"version":1,"config":{"a":"1"}}')
    session = listening.session
    session._client._call(_SESSION_EXPIRED, session._client.handler.async_result())
    assert listening.changes.get(timeout=WAIT) == ("topics", "orders"), "also what came without a notice"
    assert listening.configs.of("orders") == {"a": "1"}


def test_a_notice_that_nobody_understands_is_passed_over(listening: Listening, other: ZkStore) -> None:
    listening.start()
    for content in (b"{", b'{"version":2,"entity_path":"nonsense"}'):
        other.configs._access.create_sequential(ConfigChanges.sequence_path, content)
    other.configs.set_config("topics", "orders", {"a": "1"})
    assert listening.changes.get(timeout=WAIT) == ("topics", "orders")


def test_a_listener_that_fails_does_not_end_the_listening(listening: Listening, other: ZkStore) -> None:
    listening.start()
    listening.fails_once = True
    for name in ("first", "second"):
        other.configs.set_config("topics", name, {"a": "1"})
        assert listening.changes.get(timeout=WAIT) == ("topics", name)


def test_a_new_topic_is_looked_up(listening: Listening, other: ZkStore) -> None:
    listening.start()
    other.topics.create_topic(TopicAssignment("orders", uuid4(), {0: ReplicaAssignment((0,))}), {"a": "1"})
    assert listening.configs.look_up(["orders", "none"]) == {"orders": {"a": "1"}, "none": {}}
    assert listening.configs.of("orders") == {"a": "1"}


def test_without_zookeeper_the_last_known_is_used(listening: Listening, other: ZkStore, proxy: CutProxy) -> None:
    other.configs.set_config("topics", "orders", {"a": "1"})
    listening.start()
    listening.session._connection_timeout_ms = 100
    proxy.cut()
    assert listening.configs.look_up(["orders"]) == {"orders": {"a": "1"}}


def test_old_notices_are_purged(other: ZkStore) -> None:
    other.configs.set_config("topics", "orders", {})
    now_ms = SYSTEM_CLOCK.now_ms()
    other.configs.purge_config_changes(now_ms)
    ((name, entity_type, entity),) = other.configs.load_config_changes()
    assert (name, entity_type, entity) == ("config_change_0000000000", "topics", "orders")
    assert other.configs.load_config_changes(after=name) == []
    other.configs.purge_config_changes(now_ms + 16 * 60 * 1000)
    assert other.configs.load_config_changes() == []
