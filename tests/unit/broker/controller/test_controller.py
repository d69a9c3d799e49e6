"""Controllers on a real ZooKeeper, telling brokers on real sockets."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fake_brokers import PATIENCE_SECONDS, FakeBroker
from kazoo.protocol.connection import _SESSION_EXPIRED

from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.admin.new_topics import MorePartitions, NewTopic
from odradek.broker.admin.topic_admin import TopicAdmin, free
from odradek.broker.controller import controller_lifecycle as office
from odradek.broker.controller.controller import Controller
from odradek.broker.controller.core.events import BrokersChanged, ControllerElected, Event, ReassignmentsListed
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.broker.zk.registration import BrokerRegistrar, ensure_roots
from odradek.broker.zk.session import SessionEvent, ZkSession
from odradek.broker.zk.store import ZkStore
from odradek.local.zookeeper_server import EmbeddedZooKeeper
from odradek.model.metadata_image import MetadataCache, MetadataImage, PartitionImage, TopicUpdate
from odradek.model.topology import Broker, Endpoint, TopicPartition
from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.schema import Request

LEADER_DURING_DELETE = -2


class Node:
    """A broker of which only the controller and what it needs is real."""

    def __init__(self, broker_id: int, connect: str) -> None:
        self.id = broker_id
        self.fake = FakeBroker(broker_id)
        self.fake.on_request = self._obey
        self.metadata = MetadataCache(MetadataImage())
        self.to_controller: list[Request] = []
        self.session = ZkSession(
            connect,
            session_timeout_ms=30_000,
            connection_timeout_ms=PATIENCE_SECONDS * 1000,
            listener=self._session_changed,
            on_znode=lambda path: self.controller.znode_changed(path),
        )
        self.session.start()
        ensure_roots(self.session)
        self.config = BrokerConfig.from_properties(
            {"broker.id": str(broker_id), "zookeeper.connect": connect, "log.dirs": "/nowhere"}
        )
        self.store = ZkStore(self.session)
        self.controller = Controller(broker_id, self.config, self.store, self.session)
        self.reaper = ExpirationReaper()
        self.reaper.start()
        self.admin = TopicAdmin(
            self.controller, self.config, self.store, self.metadata, self.reaper, self.to_controller.append
        )
        self.registrar = BrokerRegistrar(self.session)
        self.registered: queue.Queue[Broker] = queue.Queue()
        self.registrar.register(self.fake.broker)

    def start(self) -> "Node":
        self.controller.start()
        return self

    def close(self) -> None:
        """As a broker that goes away: the session ends, and with it the seat."""
        self.controller.stop()
        self.admin.stop()
        self.reaper.stop()
        self.session.close()
        self.fake.close()

    def expire_session(self) -> None:
        self.session._client._call(_SESSION_EXPIRED, self.session._client.handler.async_result())

    def _session_changed(self, change: SessionEvent) -> None:
        self.controller.session_changed(change)
        if change is SessionEvent.SESSION_RENEWED:
            threading.Thread(target=self._register_anew, daemon=True).start()

    def _register_anew(self) -> None:
        broker = self.registrar.register(self.fake.broker)
        self.controller.broker_registered(broker)
        self.registered.put(broker)

    def _obey(self, request: Request) -> None:
        if isinstance(request, UpdateMetadataRequest):
            brokers = {
                broker.id: Broker(
                    broker.id, tuple(Endpoint(e.listener, "PLAINTEXT", e.host, e.port) for e in broker.endpoints)
                )
                for broker in request.live_brokers
            }
            news = [
                TopicUpdate(
                    topic.topic_name,
                    topic.topic_id,
                    {
                        p.partition_index: None
                        if p.leader == LEADER_DURING_DELETE
                        else PartitionImage(p.leader, p.leader_epoch, tuple(p.replicas), tuple(p.isr))
                        for p in topic.partition_states
                    },
                )
                for topic in request.topic_states
            ]
            self.metadata.publish(self.metadata.image.updated(request.controller_id, brokers, news))


OpenNode = Callable[[int], Node]


@pytest.fixture
def open_node(zookeeper: str) -> Iterator[OpenNode]:
    root = f"/{uuid4()}"
    with ExitStack() as opened:

        def open_one(broker_id: int) -> Node:
            node = Node(broker_id, zookeeper + root)
            opened.callback(node.close)
            return node

        yield open_one


def until(holds: Callable[[], Any], what: str) -> None:
    """Waits for something that nobody tells of."""
    deadline_ms = SYSTEM_CLOCK.monotonic_ms() + PATIENCE_SECONDS * 1000
    pause = threading.Event()
    while not holds():
        assert SYSTEM_CLOCK.monotonic_ms() < deadline_ms, f"waited in vain: {what}"
        pause.wait(0.02)


def shows(node: Node, holds: Callable[[MetadataImage], bool]) -> None:
    until(lambda: holds(node.metadata.image), "the metadata image shows it")


def knows_brokers(node: Node, *ids: int) -> None:
    shows(node, lambda image: sorted(image.brokers) == sorted(ids))


class Answers:
    """Return the value that `done` was called with."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Any] = queue.Queue()
        self.done = self._queue.put

    def get(self) -> Any:
        return self._queue.get(timeout=PATIENCE_SECONDS)


def create(node: Node, *topics: NewTopic, timeout_ms: int = 60_000, validate_only: bool = False) -> Any:
    answers = Answers()
    node.admin.create(topics, validate_only=validate_only, timeout_ms=timeout_ms, permit=free, done=answers.done)
    return answers.get()


def delete(node: Node, name: str) -> KafkaError | None:
    answers = Answers()
    node.admin.delete([name], timeout_ms=60_000, permit=free, done=answers.done)
    refusal: KafkaError | None = answers.get()[name]
    return refusal


def moves(node: Node) -> Any:
    """Return the controller's answer about reassignments."""
    answers = Answers()
    node.controller.submit(ReassignmentsListed(None, answers.done))
    return answers.get()


def epoch_of(node: Node) -> int:
    """-1 while it isn't controller."""
    term = node.controller.term
    return -1 if term is None else term.epoch


def insist(ask: Callable[[], Any]) -> Any:
    """Asks again, as clients do, while nobody is controller."""
    answers: list[Any] = []

    def is_served() -> bool:
        answers.append(ask())
        return getattr(answers[-1], "code", None) != ErrorCode.NOT_CONTROLLER

    until(is_served, "somebody is controller")
    return answers[-1]


def test_topics_are_created_grow_and_go(open_node: OpenNode) -> None:
    first, second = open_node(0).start(), open_node(1)
    knows_brokers(first, 0, 1)
    (created,) = create(first, NewTopic("orders", 2, 2, configs=[("retention.ms", "1000")]))
    assert (created.name, created.partitions, created.replication_factor) == ("orders", 2, 2)
    assert first.metadata.image.topics["orders"].id == created.id
    assert first.store.configs.load_config("topics", "orders") == {"retention.ms": "1000"}
    told = second.fake.wait_for(lambda told: any(isinstance(r, LeaderAndIsrRequest) for r in told))
    assert isinstance(told[0], UpdateMetadataRequest)

    twice, unknown_key = create(first, NewTopic("orders", 1, 1), NewTopic("new", 1, 1, configs=[("x", "y")]))
    assert (twice.code, unknown_key.code) == (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_CONFIG)
    (too_many,) = create(first, NewTopic("wide", 1, 3))
    assert too_many.code == ErrorCode.INVALID_REPLICATION_FACTOR
    (checked,) = create(first, NewTopic("dry", 1, 1), validate_only=True)
    assert checked.name == "dry"
    assert first.store.topics.load_topics(["dry"]) == {}

    answers = Answers()
    more = [MorePartitions("orders", 3), MorePartitions("nothing", 2)]
    first.admin.add_partitions(more, validate_only=False, timeout_ms=60_000, permit=free, done=answers.done)
    grown = answers.get()
    assert grown["orders"] is None
    assert grown["nothing"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(first.metadata.image.topics["orders"].partitions) == 3

    first.admin.delete(["orders", "nothing"], timeout_ms=60_000, permit=free, done=answers.done)
    gone = answers.get()
    assert gone["orders"] is None
    assert gone["nothing"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    until(lambda: first.store.topics.load_topics() == {}, "the topic's nodes go")


def test_only_the_controller_serves_and_others_ask_it(open_node: OpenNode) -> None:
    first = open_node(0).start()
    knows_brokers(first, 0)
    second = open_node(1).start()
    knows_brokers(second, 0, 1)
    assert not second.controller.is_active
    assert moves(second).code == ErrorCode.NOT_CONTROLLER
    (answer,) = create(second, NewTopic("orders", 1, 1))
    assert answer.code == ErrorCode.NOT_CONTROLLER
    assert second.admin.create_soon("made.by.asking")
    until(lambda: second.to_controller, "the controller is asked")
    (asked,) = second.to_controller
    assert isinstance(asked, CreateTopicsRequest)
    assert [topic.name for topic in asked.topics] == ["made.by.asking"]

    assert first.admin.create_soon("made.by.asking")
    shows(first, lambda image: "made.by.asking" in image.topics)
    assert moves(first) == {}


def test_a_topic_without_a_leader_in_time_is_timed_out(open_node: OpenNode) -> None:
    node = open_node(0).start()
    knows_brokers(node, 0)
    (late,) = create(node, NewTopic("orders", 1, 1), timeout_ms=0)
    assert late.code == ErrorCode.REQUEST_TIMED_OUT
    shows(node, lambda image: "orders" in image.topics)


def test_another_broker_takes_over_when_the_controller_goes(zookeeper: str, open_node: OpenNode) -> None:
    second = open_node(1)
    first = Node(0, second.session.connect_string).start()
    try:
        knows_brokers(first, 0, 1)
        create(first, NewTopic("orders", 1, 2, assignments={0: (0, 1)}))
        second.start()
        epoch = epoch_of(first)
    finally:
        first.close()
    until(lambda: epoch_of(second) == epoch + 1, "the seat is taken")
    tp = TopicPartition("orders", 0)

    def leads(image: MetadataImage) -> bool:
        partition = image.partition(tp)
        return partition is not None and (partition.leader, partition.isr) == (1, (1,))

    shows(second, leads)
    assert second.metadata.image.controller_id == 1


def test_an_expired_session_ends_the_tenure_and_a_new_one_begins(open_node: OpenNode) -> None:
    node = open_node(0).start()
    knows_brokers(node, 0)
    create(node, NewTopic("orders", 1, 1))
    before = epoch_of(node)
    node.expire_session()
    until(lambda: epoch_of(node) > before, "it is elected again")
    node.registered.get(timeout=PATIENCE_SECONDS)
    (created,) = create(node, NewTopic("more", 1, 1))
    assert created.name == "more"


def test_while_zookeeper_is_away_the_controller_waits(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path)
    server.start()
    node = Node(0, server.connect).start()
    try:
        knows_brokers(node, 0)
        epoch = epoch_of(node)
        server.kill()
        node.session._connection_timeout_ms = 100  # it loses patience, and the controller must not
        answers = Answers()
        node.controller.submit(BrokersChanged())  # has to read, and can't
        node.controller.submit(ReassignmentsListed(None, answers.done))
        (late,) = create(node, NewTopic("orders", 1, 1))
        assert late.code == ErrorCode.REQUEST_TIMED_OUT
        node.session._connection_timeout_ms = PATIENCE_SECONDS * 1000
        server.start()
        assert answers.get() == {}
        assert insist(lambda: create(node, NewTopic("others", 1, 1))[0]).name == "others"
        assert epoch_of(node) == epoch
    finally:
        node.close()
        server.stop()


def test_a_controller_that_was_replaced_without_noticing_resigns(open_node: OpenNode) -> None:
    node = open_node(0).start()
    knows_brokers(node, 0)
    before = epoch_of(node)
    _, stat = node.session.call(lambda zk: zk.get_async("/controller_epoch"))
    node.session.call(lambda zk: zk.set_async("/controller_epoch", str(before + 5).encode(), stat.version))
    create(node, NewTopic("orders", 1, 1), timeout_ms=0)  # obeying it is the first write that is refused
    until(lambda: epoch_of(node) == before + 6, "it notices, and is elected anew")
    shows(node, lambda image: "orders" in image.topics)


JUNK = [
    "/brokers/ids/junk",
    "/brokers/ids/7",
    "/brokers/topics/junk",
    "/brokers/topics/halfway",
    "/brokers/topics/sound/partitions/junk",
    "/admin/delete_topics/never-was",
    "/admin/reassign_partitions",
    "/admin/preferred_replica_election",
    "/isr_change_notification/isr_change_0000000000",
    "/isr_change_notification/junk",
    "/log_dir_event_notification/log_dir_event_0000000000",
    "/config/topics/junk",
    "/config/changes/config_change_junk",
]
CONTENTS = [b"", b"\xff\xfe{", b"[]", b'{"version": 99}', b'{"version":1,"partitions":{"x":[1]}}']


@pytest.mark.parametrize("content", CONTENTS, ids=["empty", "no text", "no object", "strange", "wrong types"])
def test_corrupt_znodes_never_stop_the_controller(
    open_node: OpenNode, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found when it takes over, and written while it is there."""
    node = open_node(0)
    make = [lambda zk, path=path: zk.create_async(path, content, makepath=True) for path in JUNK]
    node.session.pipeline(make)
    node.start()
    knows_brokers(node, 0)
    (created,) = create(node, NewTopic("orders", 1, 1))
    assert created.name == "orders"
    state = "/brokers/topics/orders/partitions/0/state"
    paths = [*JUNK, state, "/brokers/topics/orders", "/controller", "/controller_epoch"]
    node.session.pipeline([lambda zk, path=path: zk.set_async(path, content) for path in paths])
    node.session.pipeline(make)
    assert insist(lambda: create(node, NewTopic("others", 2, 1))[0]).name == "others"
    assert insist(lambda: delete(node, "others")) is None
    assert "decision failed" not in "".join(capsys.readouterr())


def test_a_decision_that_fails_is_answered_and_the_next_one_made(
    open_node: OpenNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = office.decide

    def flawed(event: Event, context: Any) -> Any:
        if isinstance(event, ReassignmentsListed):
            raise RuntimeError("a flaw")
        return decide(event, context)

    monkeypatch.setattr(office, "decide", flawed)
    node = open_node(0).start()
    knows_brokers(node, 0)
    assert moves(node).code == ErrorCode.UNKNOWN_SERVER_ERROR
    (created,) = create(node, NewTopic("orders", 1, 1))
    assert created.name == "orders"


def test_a_take_over_that_fails_is_tried_again(open_node: OpenNode, monkeypatch: pytest.MonkeyPatch) -> None:
    decide, failures = office.decide, [RuntimeError("a flaw")]

    def flawed(event: Event, context: Any) -> Any:
        if isinstance(event, ControllerElected) and failures:
            raise failures.pop()
        return decide(event, context)

    monkeypatch.setattr(office, "decide", flawed)
    node = open_node(0).start()
    knows_brokers(node, 0)
    assert epoch_of(node) == 2


def test_who_waits_when_the_tenure_ends_is_told(open_node: OpenNode, monkeypatch: pytest.MonkeyPatch) -> None:
    decide = office.decide
    reached, goes_on = threading.Event(), threading.Event()

    def held_up(event: Event, context: Any) -> Any:
        if isinstance(event, BrokersChanged):
            reached.set()
            goes_on.wait(PATIENCE_SECONDS)
        return decide(event, context)

    monkeypatch.setattr(office, "decide", held_up)
    node = open_node(0).start()
    knows_brokers(node, 0)
    node.controller.submit(BrokersChanged())
    assert reached.wait(PATIENCE_SECONDS)
    answers: queue.Queue[Any] = queue.Queue()
    node.controller.submit(ReassignmentsListed(None, answers.put))
    node.controller.session_changed(SessionEvent.SESSION_LOST)
    goes_on.set()
    assert answers.get(timeout=PATIENCE_SECONDS).code == ErrorCode.NOT_CONTROLLER
    until(lambda: not node.controller.is_active, "it resigns")
