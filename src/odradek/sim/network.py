"""Messages on their way. They are delayed, reordered and lost, as the story wants it."""

from collections.abc import Callable
from dataclasses import dataclass

Action = Callable[[], object]


def _nothing() -> None:
    """Loss of a message whose sender doesn't wait."""


@dataclass(eq=False, slots=True)
class Message:
    text: str
    deliver: Action
    lose: Action
    channel: object = None  # those of one channel arrive in order, and are lost only with it
    to: int | None = None  # the broker that must be awake to take it


class Network:
    def __init__(self, tell: Callable[[str], None]) -> None:
        self.messages: list[Message] = []
        self.frozen: set[int] = set()
        """Brokers that take nothing until they thaw."""
        self._tell = tell

    def post(
        self, text: str, deliver: Action, lose: Action = _nothing, channel: object = None, to: int | None = None
    ) -> None:
        self.messages.append(Message(text, deliver, lose, channel, to))

    def first_ones(self) -> list[Message]:
        """Return the messages that may arrive next."""
        first = []
        channels = set()
        for message in self.messages:
            if message.channel is not None:
                if message.channel in channels:
                    continue
                channels.add(message.channel)
            if message.to not in self.frozen:
                first.append(message)
        return first

    def loose_ones(self) -> list[Message]:
        return [message for message in self.messages if message.channel is None]

    def arrive(self, message: Message) -> None:
        self.messages.remove(message)
        self._tell(f"arrives: {message.text}")
        message.deliver()

    def lose(self, message: Message) -> None:
        self.messages.remove(message)
        self._tell(f"lost: {message.text}")
        message.lose()

    def give_up(self, message: Message) -> None:
        """Its sender doesn't wait for an answer any longer, but it may still arrive: a half-open connection."""
        self._tell(f"given up: {message.text}")
        message.lose()
