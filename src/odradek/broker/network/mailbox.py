"""Queue of actions for a thread that sleeps in a selector: a post wakes it, and it carries them out."""

import os
import weakref
from collections import deque
from collections.abc import Callable

from odradek.base.logs import get_logger

log = get_logger(__name__)


class Mailbox:
    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """Readable when the owner has been woken."""
        self.owner_sleeps = False
        """The owner sets it before it looks for posts for the last time, so that none is missed."""
        self.is_closed = False
        """The owner's thread has ended: the posting thread carries the action out."""
        self.posts: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        """Posted actions in their order; the mailbox alone changes them."""
        weakref.finalize(self, os.close, self.fd)  # not earlier: a late post may still write to it

    def __bool__(self) -> bool:
        return bool(self.posts)

    def post(self, action: Callable[..., None], *arguments: object) -> None:
        """Any thread."""
        self.posts.append((action, arguments))
        self.wake()

    def leave(self, action: Callable[..., None], *arguments: object) -> None:
        """Post an action without waking the owner, for a sender that looks after it later."""
        self.posts.append((action, arguments))

    def wake(self) -> None:
        """Wake the owner if it sleeps, so that a burst of posts costs one write."""
        if self.owner_sleeps:
            self.owner_sleeps = False
            os.eventfd_write(self.fd, 1)
        elif self.is_closed:
            self.run_posted()

    def close(self) -> None:
        """Carry out the remaining posts at the end of the owner. Each is carried out once."""
        self.is_closed = True
        self.run_posted()

    def acknowledge(self) -> None:
        """Reset the wake-up after the owner has seen that `fd` is readable."""
        os.eventfd_read(self.fd)

    def run_posted(self) -> None:
        """Carry out the actions posted so far. A failure is logged and doesn't affect the others."""
        for _ in range(len(self.posts)):
            try:
                action, arguments = self.posts.popleft()
            except IndexError:
                return  # closed, and another thread had them
            try:
                action(*arguments)
            except Exception:
                log.exception("posted action failed", action=getattr(action, "__name__", repr(action)))
