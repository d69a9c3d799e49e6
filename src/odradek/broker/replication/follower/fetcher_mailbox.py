"""Thread-safe queue of actions for a replica fetcher thread; posting wakes the thread.

The fetcher's thread takes actions, sleeps and looks at the flags; other threads only post.
"""

import select
from collections.abc import Callable

from odradek.broker.network.mailbox import Mailbox


class FetcherMailbox:
    def __init__(self) -> None:
        self.is_stopping = False
        self.is_urgent = False
        """Something was posted that the fetch in flight should not hold up."""
        self._mailbox = Mailbox()
        self._poller = self.new_poller()

    def post(self, action: Callable[..., None], *arguments: object, urgent: bool = False) -> None:
        if urgent:
            self.is_urgent = True
        self._mailbox.post(action, *arguments)

    def stop(self) -> None:
        self.is_stopping = True
        self._mailbox.post(lambda: None)

    def take(self) -> None:
        """Execute the posted actions."""
        self.is_urgent = False
        self._mailbox.run_posted()

    def rest(self, timeout_ms: int) -> bool:
        """Sleep until the time is over or an action is posted; return whether one was."""
        self.about_to_sleep()
        if self._mailbox or self.is_stopping:
            return True
        return bool(self.poll(self._poller, timeout_ms)) or bool(self._mailbox)

    def new_poller(self) -> select.poll:
        """Return a poller that a post wakes; other descriptors may be registered beside it."""
        poller = select.poll()
        poller.register(self._mailbox.fd, select.POLLIN)
        return poller

    def about_to_sleep(self) -> None:
        """Mark the owner as asleep, before it looks at the flags for the last time."""
        self._mailbox.owner_sleeps = True

    def poll(self, poller: select.poll, timeout_ms: int) -> list[int]:
        """The file descriptors that are ready."""
        ready = [fd for fd, _ in poller.poll(max(timeout_ms, 0))]
        if self._mailbox.fd in ready:
            self._mailbox.acknowledge()
        return ready
