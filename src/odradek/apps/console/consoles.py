"""The consoles of a process: one for all, or with logins one for each session."""

from nicegui import ui

from odradek.apps.console.access import Access
from odradek.apps.console.changes import Changes
from odradek.apps.console.console import Console, Machine
from odradek.apps.console.feeds import Feeds
from odradek.apps.console.guard import Guard
from odradek.apps.console.options import ConsoleOptions
from odradek.apps.console.reassigner import Reassigner
from odradek.base.clock import Clock


class Consoles:
    """Used by the event loop alone."""

    def __init__(
        self, options: ConsoleOptions, changes: Changes, guard: Guard, clock: Clock, machine: Machine | None = None
    ) -> None:
        self.machine = machine
        self._options = options
        self._changes = changes
        self._guard = guard
        self._clock = clock
        self._reassigner = Reassigner()
        self._of_sessions: dict[Access, Console] = {}
        self._of_all = self._made(Access(options.bootstrap), None)

    def here(self) -> Console:
        """The console of the request that is being answered."""
        if self._options.login is None:
            return self._of_all
        session = self._guard.session(ui.context.client.request.cookies)
        if session is None or session.access is None:  # it ended since the guard let the request pass
            ended = Access(self._options.bootstrap)
            ended.close()
            return self._made(ended, "")
        known = self._of_sessions.get(session.access)
        if known is None:
            known = self._made(session.access, session.name)
            alive = {access: console for access, console in self._of_sessions.items() if not access.is_closed}
            self._of_sessions = {**alive, session.access: known}
        return known

    def _made(self, access: Access, user: str | None) -> Console:
        feeds = Feeds(access, self._clock)
        return Console(self._options, access, feeds, self._changes, self._guard, self._reassigner, self.machine, user)
