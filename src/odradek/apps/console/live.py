"""A piece of a page that follows a feed: HTML rendered here, patched into the page by `assets/live.js`."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from nicegui import events
from nicegui.element import Element

from odradek.apps.console.markup import Html

ASSETS = Path(__file__).parent / "assets"
Act = dict[str, str]
NOTHING = Html("")


class Live(Element, component=ASSETS / "live.js"):
    def __init__(self, html: Html = NOTHING, on_act: Callable[[Act], Awaitable[None] | None] | None = None) -> None:
        """`on_act` gets the data attributes of the element with `data-act` that was clicked."""
        super().__init__()
        self._props["html"] = str(html)
        if on_act is not None:
            self.on("act", lambda event: on_act(_act(event)))

    def show(self, html: Html) -> None:
        """Send the content only if it differs from the one on the page."""
        if self._props["html"] != html:
            self._props["html"] = str(html)
            self.update()


def _act(event: events.GenericEventArguments) -> Act:
    arguments = event.args if isinstance(event.args, dict) else {}
    return {str(key): str(value) for key, value in arguments.items()}
