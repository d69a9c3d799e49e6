"""Messages on their way. They are delayed, reordered and lost, as the story wants it."""

from collections.abc import Callable
from dataclasses import dataclass

Action = Callable[[], object]


@dataclass(eq=False)
class Message:
    text: str
    deliver: Action
    lose: Action = lambda: None
    channel: object = None  # those of one channel arrive in order, and are lost only with it


class Network:
    def __init__(self, tell: Callable[[str], None]) -> None:
        self.messages: list[Message] = []
        self._tell = tell

    def post(
        self,
        text: str,
        deliver: Action,
        lose: Action = lambda: None,
        channel: object = None,
    ) -> None:
        self.messages.append(Message(text, deliver, lose, channel))

    def first_ones(self) -> list[Message]:
        """Return the messages that may arrive next."""
        first = []
        channels = set()
        for message in self.messages:
            if message.channel is None or message.channel not in channels:
                first.append(message)
                channels.add(message.channel)
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
        """Its sender doesn't wait for an answer any longer, but it may still arrive."""
        self._tell(f"given up: {message.text}")
        message.lose()
