"""Messages on their way. They are delayed, held back, reordered and lost, as the story wants it; pipes get full."""

from collections.abc import Callable
from dataclasses import dataclass

from odradek.base.clock import ManualClock
from odradek.sim.slow_disks import SlowDisks

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
    sender: int | None = None  # the broker that sent it; None for clients
    is_held: bool = False  # until the story releases it
    writes: bool = False  # its receiver writes to its disk


class Network:
    def __init__(self, tell: Callable[[str], None], disks: SlowDisks | None = None) -> None:
        self.messages: list[Message] = []
        self.frozen: set[int] = set()
        """Brokers that take nothing until they thaw."""
        self.cut_off: set[int] = set()
        """Brokers that nothing reaches, and from which nothing comes."""
        self.full: dict[object, None] = {}
        """Channels whose receiver doesn't read: nothing arrives until the pipe drains. In the order of the story."""
        self.holds_next: Callable[[str], bool] | None = None
        """Texts of which the next message is held back."""
        self.delays_next: Callable[[str], bool] | None = None
        """Texts of which the next message is delayed."""
        self.disks = disks or SlowDisks(ManualClock())
        self._tell = tell

    def post(
        self,
        text: str,
        deliver: Action,
        lose: Action = _nothing,
        channel: object = None,
        to: int | None = None,
        sender: int | None = None,
        *,
        is_held: bool = False,
        writes: bool = False,
    ) -> None:
        message = Message(text, deliver, lose, channel, to, sender, is_held, writes)
        self.messages.append(message)
        if self.holds_next is not None and channel is None and self.holds_next(text):
            self.holds_next = None
            self.hold(message)
        elif self.delays_next is not None and channel is None and self.delays_next(text):
            self.delays_next = None
            self.delay(message)

    def first_ones(self) -> list[Message]:
        """Return the messages that may arrive next."""
        first = []
        channels = set()
        for message in self.messages:
            if message.channel is not None:
                if message.channel in channels:
                    continue
                channels.add(message.channel)
            if message.to in self.frozen or message.channel in self.full or message.is_held:
                continue
            if message.writes and self.disks.is_busy(message.to):
                continue
            if not self.cut_off or not self.is_cut(message):
                first.append(message)
        return first

    def is_cut(self, message: Message) -> bool:
        """Return whether the message has to leave or reach a broker that is cut off; one to itself arrives."""
        ends = {message.to, message.sender}
        return len(ends) > 1 and not ends.isdisjoint(self.cut_off)

    def loose_ones(self) -> list[Message]:
        return [message for message in self.messages if message.channel is None]

    def channels(self) -> list[object]:
        """Return the channels with messages on their way."""
        return list(dict.fromkeys(m.channel for m in self.messages if m.channel is not None))

    def heal(self) -> None:
        self.frozen.clear()
        self.cut_off.clear()
        self.full.clear()
        self.disks.heal()
        self.holds_next = self.delays_next = None
        for message in self.messages:
            message.is_held = False

    def arrive(self, message: Message) -> None:
        self.messages.remove(message)
        self._tell(f"arrives: {message.text}")
        if message.writes and message.to is not None:
            self.disks.begin_write(message.to)
        message.deliver()

    def lose(self, message: Message) -> None:
        self.messages.remove(message)
        self._tell(f"lost: {message.text}")
        message.lose()

    def take_out(self, message: Message) -> None:
        """Leave a message to the caller, who delivers it later; its sender waits."""
        self.messages.remove(message)
        self._tell(f"delayed: {message.text}")

    def give_up(self, message: Message) -> None:
        """The sender stops waiting for an answer, but the message may still arrive: a half-open connection."""
        self._tell(f"given up: {message.text}")
        message.lose()

    def delay(self, message: Message) -> None:
        """Keep a message until the story releases it; its sender waits."""
        self._tell(f"delayed: {message.text}")
        message.is_held = True

    def hold(self, message: Message) -> None:
        """Keep a message whose sender gives it up: it arrives when the story releases it."""
        message.is_held = True
        self.give_up(message)
