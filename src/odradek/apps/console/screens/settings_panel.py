"""Settings of a topic or a broker: searched, with documentation and units, changed one by one."""

from collections.abc import Mapping

from nicegui import ui

from odradek.apps.console.console import Console
from odradek.apps.console.dialogs import ChangeDialog
from odradek.apps.console.feeds import UNREADABLE, plainly
from odradek.apps.console.live import Act, Live
from odradek.apps.console.markup import tag
from odradek.apps.console.page import off_loop, perform
from odradek.apps.console.views.settings import default_of, matching, settings_html, with_unit
from odradek.base.config.definition import ConfigSource
from odradek.base.config.docs import broker_documentation, topic_documentation
from odradek.client.config_admin import Resource, Setting, alter_configs, describe_configs
from odradek.protocol.messages.describe_configs import ConfigResourceType

_TIMEOUT_MS = 3_000


class SettingsPanel:
    def __init__(self, console: Console, resource: Resource) -> None:
        is_topic = resource.type is ConfigResourceType.TOPIC
        self._console = console
        self._resource = resource
        self._kind = "topic" if is_topic else "broker"
        self._own = ConfigSource.DYNAMIC_TOPIC_CONFIG if is_topic else ConfigSource.DYNAMIC_BROKER_CONFIG
        self._documentation: Mapping[str, str] = topic_documentation() if is_topic else broker_documentation()
        self._settings: list[Setting] = []
        self._only_own, self._text = True, ""
        with ui.element("div").classes("top").style("margin: 28px 0 10px"):
            ui.html("<h2 style='margin:0'>Settings</h2>", sanitize=False).classes("grow")
            ui.switch(
                f"only what is set on the {self._kind}", value=True, on_change=lambda e: self._choose(e.value)
            ).props("dense")
            ui.input(placeholder="Search settings", on_change=lambda e: self._search(e.value)).props(
                'outlined dense clearable debounce=120 aria-label="Search settings"'
            )
        self._shown = Live(on_act=self._act)
        ui.timer(0, self._load, once=True)

    async def _load(self) -> None:
        try:
            self._settings = await off_loop(self._read)
        except UNREADABLE as error:
            self._shown.show(tag("div", plainly(error), cls="card empty"))
            return
        self._draw()

    def _read(self) -> list[Setting]:
        with self._console.access.client(_TIMEOUT_MS) as client:
            return describe_configs(client, self._resource)

    def _draw(self) -> None:
        found = matching(self._settings, self._own, self._text, only_own=self._only_own)
        empty = f"Nothing is set on this {self._kind} itself; search for a setting to change it."
        if self._text:
            empty = "No setting has that in its name."
        read_only = self._console.changes.read_only
        self._shown.show(settings_html(found, self._own, self._documentation, read_only=read_only, empty=empty))

    def _choose(self, only_own: bool) -> None:
        self._only_own = only_own
        self._draw()

    def _search(self, text: str | None) -> None:
        self._text = text or ""
        self._draw()

    async def _act(self, act: Act) -> None:
        chosen = next((setting for setting in self._settings if setting.name == act.get("name")), None)
        if chosen is not None and await self._change(chosen):
            await self._load()

    async def _change(self, setting: Setting) -> bool:
        name, subject = setting.name, f"{self._kind} {self._resource.name}"
        dialog = ChangeDialog(f"Change {name}", "Change")
        default = default_of(setting, self._own)
        now = "" if setting.is_sensitive else setting.value or ""
        value = dialog.field("Value (empty: back to the default)", now, full=True)
        if text := self._documentation.get(name):
            with dialog.below:
                ui.label(text).classes("note")

        def sentence() -> str:
            before = "a secret" if setting.is_sensitive else setting.value
            if not value.value:
                return f"Removes {name} from {subject}; it becomes {'a secret' if setting.is_sensitive else default}."
            unit = with_unit(name, value.value)
            return f"Sets {name} of {subject} from {before} to {value.value}{f' ({unit})' if unit else ''}, at once."

        dialog.says(sentence)

        async def work() -> str:
            changes = {name: value.value} if value.value else {}
            gone = [] if value.value else [name]
            shown = "a secret" if setting.is_sensitive else value.value
            what = f"set {name}={shown} on {subject}" if changes else f"remove {name} from {subject}"
            await perform(self._console, what, lambda c: alter_configs(c, self._resource, changes, gone))
            return f"{name} is changed."

        return await dialog.run(work)
