"""The consoles of a process: one for each cluster, or with logins one for each session."""

from nicegui import ui
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from odradek.apps.console.access import Access
from odradek.apps.console.changes import Changes
from odradek.apps.console.console import Console, Machine
from odradek.apps.console.feeds import Feeds
from odradek.apps.console.guard import Guard
from odradek.apps.console.options import ConsoleOptions
from odradek.apps.console.reassigner import Reassigner
from odradek.base.clock import Clock

CLUSTER_COOKIE = "odradek_cluster"


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
        self._of_all = self._made(options, Access(options.bootstrap), None)
        self._of_clusters = {options.name: self._of_all}
        for name, bootstrap in options.clusters.items():
            self._of_clusters[name] = self._made(options.of_cluster(bootstrap), Access(bootstrap), None, name)

    def here(self) -> Console:
        """The console of the request that is being answered."""
        request = ui.context.client.request
        if self._options.login is None:
            wanted = request.query_params.get("cluster") or request.cookies.get(CLUSTER_COOKIE, "")
            return self._of_clusters.get(wanted, self._of_all)
        session = self._guard.session(request.cookies)
        if session is None or session.access is None:  # it ended since the guard let the request pass
            ended = Access(self._options.bootstrap)
            ended.close()
            return self._made(self._options, ended, "")
        known = self._of_sessions.get(session.access)
        if known is None:
            known = self._made(self._options, session.access, session.name)
            alive = {access: console for access, console in self._of_sessions.items() if not access.is_closed}
            self._of_sessions = {**alive, session.access: known}
        return known

    @property
    def unattended(self) -> list[Console]:
        """Consoles that can read their cluster without a user; with logins there are none."""
        return [] if self._options.login is not None else list(self._of_clusters.values())

    def choose(self, request: Request, name: str) -> Response:
        """Remember a cluster for the next pages of this browser; not on the word of another site."""
        answer = RedirectResponse("/", 303)
        is_own = request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
        if name in self._of_clusters and is_own:
            secure = not self._options.is_local
            answer.set_cookie(CLUSTER_COOKIE, name, httponly=True, samesite="strict", secure=secure)
        return answer

    def _made(self, options: ConsoleOptions, access: Access, user: str | None, cluster: str = "") -> Console:
        feeds = Feeds(access, self._clock)
        machine = None if cluster else self.machine
        shared = (self._changes, self._guard, self._reassigner)
        return Console(options, access, feeds, *shared, machine, user, cluster, self._options.name)
