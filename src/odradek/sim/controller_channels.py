"""Channels of the controller on the simulated network: in order per broker; now and then a request is sent twice."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from random import Random

from odradek.broker.controller.core import effects
from odradek.broker.controller.core.context import ControllerContext
from odradek.broker.controller.core.events import Event
from odradek.broker.controller.request_answers import event_of
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.schema import Request, Response
from odradek.sim.broker import SimulatedBroker
from odradek.sim.network import Network

SENT_TWICE = 0.1
"""Share of the controller's requests that are sent twice: the first copy was held back and comes later, at any time."""
STOP_SENT_TWICE = 0.5
"""The same share of StopReplica, of which there are few; its first copy comes much later."""


class ControllerChannels:
    def __init__(self, network: Network, brokers: Mapping[int, SimulatedBroker], chance: Random) -> None:
        self._network = network
        self._brokers = brokers
        self._chance = chance
        self._correlation_ids = count()
        self._closed: set[object] = set()

    def send(self, context: ControllerContext, effect: effects.Send, answered: Callable[[Event], None]) -> None:
        epoch, broker_id, request = context.term.epoch, effect.broker_id, effect.request
        registered = context.brokers.get(broker_id)
        channel = epoch, broker_id, registered.epoch if registered else -1
        text = f"{type(request).__name__} of controller epoch {epoch} at {broker_id}"
        first, second = next(self._correlation_ids), next(self._correlation_ids)

        def deliver() -> None:
            is_stop = isinstance(request, StopReplicaRequest)
            if self._chance.random() < (STOP_SENT_TWICE if is_stop else SENT_TWICE):
                held = f"held back: {text}"
                again = partial(self._hand_over, broker_id, request, first)
                self._network.post(held, again, to=broker_id, sender=context.broker_id, is_held=is_stop)
            answer = self._hand_over(broker_id, request, second)
            event = event_of(broker_id, request, answer) if answer is not None else None
            if event is not None and channel not in self._closed:
                answered(event)

        self._network.post(text, deliver, channel=channel, to=broker_id, sender=context.broker_id)

    def close(self, context: ControllerContext, broker_id: int) -> None:
        """Drop the requests that wait in the channel. The first may be on its way; its answer is ignored."""
        of_broker = [m.channel for m in self._network.messages if _is_of(m.channel, context.term.epoch, broker_id)]
        for channel in dict.fromkeys(of_broker):
            self._closed.add(channel)
            waiting = [message for message in self._network.messages if message.channel == channel]
            for message in waiting[1:]:
                self._network.messages.remove(message)

    def _hand_over(self, broker_id: int, request: Request, correlation_id: int) -> Response | None:
        broker = self._brokers.get(broker_id)
        return None if broker is None else broker.handle_controller_request(request, correlation_id)


def _is_of(channel: object, term: int, broker_id: int) -> bool:
    return isinstance(channel, tuple) and channel[:2] == (term, broker_id)
