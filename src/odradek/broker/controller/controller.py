"""The controller of the cluster. Every broker has one: it takes part in the election, and acts while it is elected.

One event thread owns everything here. Watches, timers, brokers' answers and requests only enqueue; the thread processes
one after the other, gets effects from `decisions`, and the effect runner performs them. An event of an earlier term is
dropped, and its request is answered with NOT_CONTROLLER.
"""

from typing import Any, TypeAlias
from uuid import UUID

from odradek.base.clock import SYSTEM_CLOCK, Clock
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.logs import get_logger
from odradek.base.threads import SupervisedThread
from odradek.base.value_classes import dataclass
from odradek.broker.controller.controller_lifecycle import ControllerLifecycle
from odradek.broker.controller.core.events import ControllerElected, Event, UncleanElectionDefaultChanged
from odradek.broker.controller.core.znode_events import event_of_znode
from odradek.broker.controller.effect_runner import ControllerTermOver
from odradek.broker.controller.event_queue import EventQueue
from odradek.broker.recorder.recorder import NOTHING_RECORDED, Records
from odradek.broker.zk.session import SessionEvent, ZkSession, ZkUnavailable
from odradek.broker.zk.store import ControllerMoved, ZkStore
from odradek.broker.zk.znodes import Controller as ControllerNode
from odradek.model.topology import Broker, ControllerTerm

log = get_logger(__name__)

ELECTION_RETRY_MS = 1_000
"""Wait after a failed election or failover."""
STOP_WAIT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class ElectionDue:
    """Time to try to become controller."""


@dataclass(frozen=True, slots=True)
class _Registered:
    """The broker has registered (again), so it may become a candidate for the controller."""

    broker: Broker


@dataclass(frozen=True, slots=True)
class _SessionLost:
    """The session has expired, and its ephemeral nodes are deleted."""


@dataclass(frozen=True, slots=True)
class _Stop:
    pass


@dataclass(frozen=True, slots=True)
class _ZnodeChanged:
    path: str


@dataclass(frozen=True, slots=True, eq=False)
class _Happened:
    lifecycle: ControllerLifecycle
    event: Event


_Item: TypeAlias = ElectionDue | _Registered | _SessionLost | _Stop | _ZnodeChanged | _Happened


class Controller:
    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        store: ZkStore,
        session: ZkSession,
        clock: Clock = SYSTEM_CLOCK,
        records: Records = NOTHING_RECORDED,
    ) -> None:
        self._broker_id = broker_id
        self._config = config
        self._store = store
        self._session = session
        self._clock = clock
        self._records = records
        self._queue: EventQueue[_Item] = EventQueue(clock)
        self._lifecycle: ControllerLifecycle | None = None
        self._sessions_lost = 0  # raised on kazoo's thread: the term of an earlier session is over from then on
        self._registered = True
        self._candidate_from_ms = 0
        self._stopping = False
        self._thread = SupervisedThread(target=self._run, name="controller")

    # --- called from any thread ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Take part in the election. The broker must be registered."""
        self._queue.put(ElectionDue())
        self._thread.start()

    def stop(self) -> None:
        """Stop acting; /controller is deleted with the session."""
        self._stopping = True
        self._queue.put_first(_Stop())
        if self._thread.ident is not None:
            self._thread.join(STOP_WAIT_SECONDS)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply the default of unclean elections to this term and the next."""
        before, self._config = self._config, config
        if config.unclean_leader_election_enable != before.unclean_leader_election_enable:
            self.submit(UncleanElectionDefaultChanged(config.unclean_leader_election_enable))

    @property
    def is_active(self) -> bool:
        return self._lifecycle is not None

    @property
    def term(self) -> ControllerTerm | None:
        """The present term, which fences its writes."""
        lifecycle = self._lifecycle
        return None if lifecycle is None else lifecycle.term

    def topic_ids(self) -> dict[str, UUID]:
        """Ids of the topics that the present term knows, which may be ahead of this broker's metadata."""
        lifecycle = self._lifecycle
        return {} if lifecycle is None else lifecycle.topic_ids()

    def submit(self, event: Event) -> None:
        """Queue a request. Its answer comes on the event thread, where the receiver may only pass it on."""
        lifecycle = self._lifecycle
        if lifecycle is None:
            _answer(event, _not_controller())
        else:
            self._queue.put(_Happened(lifecycle, lifecycle.admit(event)))

    def znode_changed(self, path: str) -> None:
        """Take a fired watch; znodes of other parts are passed over."""
        if path == ControllerNode.path or event_of_znode(path) is not None:
            self._queue.put_once(_ZnodeChanged(path))

    def session_changed(self, change: SessionEvent) -> None:
        if change is SessionEvent.SESSION_LOST:
            self._sessions_lost += 1
            self._queue.put_first(_SessionLost())

    def broker_registered(self, broker: Broker) -> None:
        """Continue with the new registration, after the session was renewed."""
        self._queue.put(_Registered(broker))

    # --- the event thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not isinstance(item := self._queue.take(), _Stop):
            try:
                self._handle(item)
            except Exception:
                log.exception("controller event failed", what=type(item).__name__)
        self._resign("the broker stops")

    def _handle(self, item: _Item) -> None:
        match item:
            case _Happened(lifecycle, event):
                if lifecycle is self._lifecycle:
                    self._decide(lifecycle, event)
                else:
                    _answer(event, _not_controller())
            case _ZnodeChanged(path) if path != ControllerNode.path:
                event_of_change = event_of_znode(path)
                if self._lifecycle is not None and event_of_change is not None:
                    self._decide(self._lifecycle, event_of_change)
            case _SessionLost():
                self._registered = False
                self._resign("its session with ZooKeeper expired")
            case _Registered(broker):
                log.debug("broker re-registered", broker=broker.id, epoch=broker.epoch)
                self._registered = True
                self._read_controller_node()
            case _:
                self._read_controller_node()

    def _decide(self, lifecycle: ControllerLifecycle, event: Event) -> None:
        try:
            lifecycle.decide(event)
        except ControllerMoved as moved:
            self._resign(str(moved))
            self._read_controller_node()
        except ControllerTermOver:
            self._resign("its session with ZooKeeper expired")
        except Exception:
            log.exception("controller decision failed", what=type(event).__name__)
            _answer(event, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The controller failed; its log says why."))
            if isinstance(event, ControllerElected):
                self._give_up(lifecycle)

    # --- the /controller node -------------------------------------------------------------------------------------

    def _read_controller_node(self) -> None:
        """Read /controller and watch it. Resign if another broker is controller, stand for election if none is.

        A node of this broker without a term is left from an earlier session: the election replaces it.
        """
        try:
            self._session.watch_nodes([ControllerNode.path])
            holder = self._store.election.current_controller()
        except ZkUnavailable:
            self._retry_election_later()
            return
        if self._lifecycle is not None and holder != self._broker_id:
            self._resign("/controller is gone" if holder is None else f"broker {holder} is controller")
        if self._lifecycle is None and holder in (None, self._broker_id) and self._may_be_candidate():
            self._run_for_election()

    def _may_be_candidate(self) -> bool:
        return self._registered and self._clock.monotonic_ms() >= self._candidate_from_ms

    def _retry_election_later(self) -> None:
        self._candidate_from_ms = self._clock.monotonic_ms() + ELECTION_RETRY_MS
        self._queue.put_later(ElectionDue(), ELECTION_RETRY_MS)

    def _run_for_election(self) -> None:
        sessions_lost = self._sessions_lost
        try:
            term = self._store.election.elect_controller(self._broker_id, self._clock.now_ms())
        except Exception as error:
            log.warning("election failed", error=str(error) or type(error).__name__)
            self._retry_election_later()
            return
        if term is None:
            log.debug("another broker was elected controller")
            return
        log.info("controller elected", broker=self._broker_id, epoch=term.epoch)
        lifecycle = ControllerLifecycle(
            self._broker_id,
            self._config,
            term,
            self._store,
            self._session,
            self._records,
            enqueue=lambda event: self._queue.put(_Happened(lifecycle, event)),
            enqueue_later=lambda event, delay_ms: self._queue.put_later(_Happened(lifecycle, event), delay_ms),
            is_over=lambda: self._stopping or self._sessions_lost != sessions_lost,
        )
        self._lifecycle = lifecycle
        lifecycle.record.term_changed("Elected", f"broker {self._broker_id} is controller of epoch {term.epoch}")
        self._decide(lifecycle, ControllerElected())
        if self._lifecycle is lifecycle:
            lifecycle.record.term_changed("TookOver", "the cluster has been read, and all brokers updated")

    def _resign(self, why: str) -> None:
        lifecycle, self._lifecycle = self._lifecycle, None
        if lifecycle is None:
            return
        log.info("controller resigned", broker=self._broker_id, epoch=lifecycle.term.epoch, because=why)
        lifecycle.record.term_changed("Resigned", why)
        lifecycle.end(_not_controller())
        self._queue.drop(lambda item: isinstance(item, _Happened) and item.lifecycle is lifecycle)

    def _give_up(self, lifecycle: ControllerLifecycle) -> None:
        """Resign after a failed take-over: another broker, or another attempt, takes over."""
        self._resign("it could not take over")
        try:
            self._store.election.resign_controller(lifecycle.term)
        except Exception as error:
            log.warning("controller failed to delete /controller", error=str(error) or type(error).__name__)
        self._retry_election_later()


def _not_controller() -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")


def _answer(event: Event, value: Any) -> None:
    answer = getattr(event, "answer", None)
    if answer is not None:
        answer(value)
