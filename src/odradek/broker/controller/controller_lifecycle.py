"""One term of the controller: its context, its channels to the brokers, and the clients that wait for its answers.

Created when the election is won, discarded when the term ends. Used by the event thread; only `admit` is called by
others.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from odradek.base.config.broker_config import BrokerConfig
from odradek.base.logs import get_logger
from odradek.broker.controller.broker_channels import BrokerChannels
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.decisions import decide
from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import Callback, Event
from odradek.broker.controller.effect_runner import EffectRunner
from odradek.broker.controller.recording import ControllerTermRecord
from odradek.broker.controller.trace import Trace
from odradek.broker.network.setup_timeout import SetupTimeout
from odradek.broker.recorder.recorder import Records
from odradek.broker.zk.session import ZkSession
from odradek.broker.zk.store import ZkStore
from odradek.model.topology import ControllerTerm

log = get_logger(__name__)


class ControllerLifecycle:
    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        term: ControllerTerm,
        store: ZkStore,
        session: ZkSession,
        records: Records,
        *,
        enqueue: Callable[[Event], None],
        enqueue_later: Callable[[Event, int], None],
        is_over: Callable[[], bool],
    ) -> None:
        self.term = term
        self._context = _context(broker_id, config, term)
        listener_name = config.control_plane_listener_name or config.inter_broker_listener_name
        self._channels = BrokerChannels(
            broker_id,
            listener_name,
            timeout_ms=config.controller_socket_timeout_ms,
            setup_timeout=lambda: SetupTimeout.of(config, listener_name),
            answered=enqueue,
        )
        self._effects = EffectRunner(store, session, self._channels, term, schedule=enqueue_later, is_over=is_over)
        self._unanswered: dict[_Once, None] = {}
        self._trace = Trace()
        self.record = ControllerTermRecord(records, term.epoch)

    def topic_ids(self) -> dict[str, UUID]:
        """A copy for other threads, made in one step."""
        return self._context.topic_ids.copy()

    def admit(self, event: Event) -> Event:
        """The event with an answer that is given once, by the decision or else by the end of the term."""
        answer: Callback | None = getattr(event, "answer", None)
        if answer is None:
            return event
        once = _Once(answer, self._unanswered)
        self._unanswered[once] = None
        unchecked: Any = event  # only events with the field come here
        answered: Event = replace(unchecked, answer=once)
        return answered

    def decide(self, event: Event) -> None:
        """Make the decision for the event and perform its effects; raises what ends the term, and unexpected errors."""
        self._trace.event(event)
        self.record.event(event)
        decision = decide(event, self._context)
        try:
            effect = next(decision)
            while True:
                effect = decision.send(self._perform(effect))
        except StopIteration:
            return

    def _perform(self, effect: Effect) -> Any:
        try:
            brought = self._effects.perform(effect)
        except Exception as error:
            self.record.failed(effect, error)
            raise
        self.record.effect(effect, brought)
        return brought

    def end(self, refusal: Exception) -> None:
        """End the term: no further requests, and an error for every waiting client."""
        self._channels.close_all()
        for once in list(self._unanswered):
            once(refusal)


class _Once:
    """An answer that is given at most once."""

    __slots__ = ("_answer", "_registry")

    def __init__(self, answer: Callback, registry: "dict[_Once, None]") -> None:
        self._answer = answer
        self._registry = registry

    def __call__(self, value: Any) -> None:
        """Pass the answer on; a failing receiver must not disturb the decision that gives it."""
        if self._registry.pop(self, self) is None:
            try:
                self._answer(value)
            except Exception:
                log.exception("controller response failed")


def _context(broker_id: int, config: BrokerConfig, term: ControllerTerm) -> ControllerContext:
    return ControllerContext(
        broker_id=broker_id,
        inter_broker_listener=config.inter_broker_listener_name,
        auto_leader_rebalance=config.auto_leader_rebalance_enable,
        imbalance_percentage_max=config.leader_imbalance_per_broker_percentage,
        imbalance_check_interval_ms=config.leader_imbalance_check_interval_seconds * 1000,
        unclean_election_default=config.unclean_leader_election_enable,
        delete_topic_enabled=config.delete_topic_enable,
        term=term,
    )
