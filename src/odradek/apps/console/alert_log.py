"""Alerts of one cluster: the active ones, and the last ones that ended. In memory, bounded.

Readings for the Cluster screen and the history keeper, which looks once a minute, write to it.
"""

import threading
from collections.abc import Collection, Iterable
from dataclasses import replace

from odradek.apps.console.views.alerts import Alert, NotedAlert

_ENDED_MAX = 20
_ACTIVE_MAX = 100


class AlertLog:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: dict[str, NotedAlert] = {}
        self._ended: list[NotedAlert] = []

    def note(self, at_ms: int, alerts: Iterable[Alert], sources: Collection[str]) -> None:
        """Note all alerts of these sources: an active one of them that is missing has ended."""
        found = {alert.name: alert for alert in alerts}
        with self._lock:
            for name, noted in list(self._active.items()):
                if noted.alert.source in sources and name not in found:
                    del self._active[name]
                    self._ended = [replace(noted, until_ms=at_ms), *self._ended][:_ENDED_MAX]
            for name, alert in found.items():
                known = self._active.get(name)
                if known is not None:
                    self._active[name] = replace(known, alert=alert)
                elif len(self._active) < _ACTIVE_MAX:
                    self._active[name] = NotedAlert(alert, at_ms)

    @property
    def shown(self) -> tuple[NotedAlert, ...]:
        """Return the active alerts, worst and oldest first, then the ended ones, youngest first."""
        with self._lock:
            active = sorted(self._active.values(), key=lambda noted: (noted.alert.level != "bad", noted.since_ms))
            return (*active, *self._ended)
