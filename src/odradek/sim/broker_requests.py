"""Requests of a simulated broker to others, in place of `BatchChannels`: they go out on the simulated network.

The code that sends waits for its answer, which a simulator in one thread can't. So it is run twice: once to see what
it asks for, and again, when the answer has arrived, to take it.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from odradek.client.broker_client import ConnectionFailed
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from odradek.protocol.schema import Request, Response
from odradek.sim.network import Action, Network

Item = TypeVar("Item")

VERIFICATION = "verification"


class PeerBroker(Protocol):
    def serve(self, request: Request, version: int, reply: Callable[[Response], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class Peers:
    """The brokers of the cluster that live and its network, as one of them reaches them."""

    network: Network = field(default_factory=lambda: Network(lambda text: None))
    find: Callable[[int], PeerBroker | None] = lambda broker_id: None
    new_producer_id: Callable[[], int] = lambda: 0
    served: list[tuple[PeerBroker, Action]] = field(default_factory=list)
    """Brokers that have a request, and what happens at its sender when the connection breaks."""

    def disconnect(self, broker: PeerBroker) -> None:
        """Drop the requests: the broker was killed."""
        broken = [lose for peer, lose in self.served if peer is broker]
        self.served[:] = [each for each in self.served if each[0] is not broker]
        for lose in broken:
            lose()


class _Asked(Exception):
    def __init__(self, request: Request, version: int) -> None:
        self.request = request
        self.version = version


class _Client:
    """A connection as the sending code sees it: without an answer, it hands on the request."""

    def __init__(self, versions: dict[type, int], answer: Response | None = None) -> None:
        self._versions = versions
        self._answer = answer
        self.address = "simulated"

    def best_version(self, api: object) -> int:
        return max(self._versions.values())

    def send(self, request: Request, version: int | None = None) -> Response:
        if self._answer is None:
            raise _Asked(request, self._versions[type(request)])
        return self._answer


def is_verification_answer(text: str) -> bool:
    """Return whether the message tells a leader whether a batch belongs to a transaction."""
    return f" to the {VERIFICATION} of " in text


class NetworkChannels(Generic[Item]):
    def __init__(
        self,
        name: str,
        broker_id: int,
        lives: Callable[[], bool],
        peers: Peers,
        versions: dict[type, int],
        exchange: Callable[[Any, list[Item]], None],
        failed: Callable[[list[Item], Exception], None],
    ) -> None:
        self._name = name
        self._broker_id = broker_id
        self._lives = lives
        self._peers = peers
        self._versions = versions
        self._exchange = exchange
        self._failed = failed
        self.is_stopped = False

    def put(self, broker: int, item: Item) -> bool:
        try:
            self._exchange(_Client(self._versions), [item])
        except _Asked as asked:
            self._ask(broker, item, asked.request, asked.version)
        return True

    def hang_up_on_others(self, alive: Container[int]) -> None:
        """Requests to them are lost on the simulated network."""

    def stop(self) -> None:
        self.is_stopped = True

    def _ask(self, broker: int, item: Item, request: Request, version: int) -> None:
        is_over = False
        entry: tuple[PeerBroker, Action] | None = None

        def lose() -> None:
            """The connection is closed: what arrives of it later is refused by its receiver."""
            nonlocal is_over
            if not is_over and self._lives():
                is_over = True
                self._failed([item], ConnectionFailed("lost"))

        def deliver() -> None:
            nonlocal entry
            if is_over:
                return
            peer = self._peers.find(broker)
            if peer is None:
                lose()
            else:
                entry = (peer, lose)
                self._peers.served.append(entry)
                peer.serve(request, version, answer)

        def answer(response: Response) -> None:
            if entry in self._peers.served:
                self._peers.served.remove(entry)

            def take() -> None:
                nonlocal is_over
                if not is_over and self._lives():
                    is_over = True
                    self._exchange(_Client(self._versions, response), [item])

            text = f"answer of {broker} to the {self._name} of {self._broker_id}"
            self._peers.network.post(text, take, lose, to=self._broker_id, sender=broker)

        text = f"{type(request).__name__} of {self._broker_id} at {broker}"
        writes = isinstance(request, WriteTxnMarkersRequest)
        self._peers.network.post(text, deliver, lose, to=broker, sender=self._broker_id, writes=writes)
