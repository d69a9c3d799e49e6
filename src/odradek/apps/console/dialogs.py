"""Dialogs before a change: a sentence beside the button describes the change, faults are shown beside the fields."""

from collections.abc import Awaitable, Callable
from functools import partial

from nicegui import ui

from odradek.apps.console.changes import NotDone
from odradek.apps.console.page import notify

Fault = str
Validate = Callable[[str], Fault | None]


class ChangeDialog:
    """A dialog that holds a form, a sentence and two buttons.

        dialog = ChangeDialog("Create a topic", "Create")
        with dialog.form: name = dialog.field("Name", check=...)
        dialog.says(lambda: f"Creates topic {name.value}.")
        await dialog.run(do_it)

    `do_it` may raise NotDone or ValueError: the sentence appears in the dialog, which stays open. Enter in a field
    submits, Escape cancels; without fields, Enter cancels.
    """

    def __init__(self, title: str, act: str, *, danger: bool = False, wide: bool = False) -> None:
        self._checks: list[Callable[[], bool]] = []
        self._says: Callable[[], str] | None = None
        self._work: Callable[[], Awaitable[str]] | None = None
        self._first: ui.element | None = None
        with ui.dialog().props("no-backdrop-dismiss") as self._dialog, ui.card().classes("wide" if wide else ""):
            ui.label(title).classes("dialog-title").props("role=heading")
            self.form = ui.element("div").classes("form")
            self.below = ui.element("div").classes("below")
            self._sentence = ui.label("").classes("will danger" if danger else "will")
            self._fault = ui.label("").classes("fault").props("role=alert")
            with ui.element("div").classes("dialog-acts"):
                cancel = ui.button("Cancel", on_click=lambda: self._dialog.submit(None)).props("flat no-caps")
                self._button = ui.button(act, on_click=self._do).props(
                    f"unelevated no-caps color={'negative' if danger else 'primary'}"
                )
        self._otherwise = cancel if danger else self._button

    def field(
        self,
        label: str,
        value: str = "",
        *,
        check: Validate | None = None,
        full: bool = False,
        area: bool = False,
        secret: bool = False,
    ) -> ui.input | ui.textarea:
        """A text field of the form; `check` returns the fault of a value. `secret`: it is not shown."""
        make = ui.textarea if area else partial(ui.input, password=secret)
        with self.form:
            field = make(label, value=value, validation=check, on_change=self._say).props(
                "outlined dense no-error-icon hide-bottom-space"
            )
        if full or area:
            field.classes("full")
        if not area:
            field.on("keydown.enter", self._do)
        self._first = self._first or field
        field.without_auto_validation()
        self._checks.append(field.validate)
        return field

    def choice(self, label: str, options: dict[str, str], value: str) -> ui.select:
        with self.form:
            return ui.select(options, label=label, value=value, on_change=self._say).props("outlined dense")

    def says(self, sentence: Callable[[], str]) -> None:
        self._says = sentence
        self._say()

    async def run(self, work: Callable[[], Awaitable[str]]) -> bool:
        """Run the change and return whether it was made; `work` returns the message to show afterwards."""
        self._work = work
        (self._first or self._otherwise).props("autofocus")
        done = await self._dialog
        self._dialog.delete()
        return bool(done)

    def _say(self) -> None:
        if self._says is not None:
            self._sentence.set_text(self._says())

    def _is_right(self) -> bool:
        """Check every field, so that every fault is shown."""
        return sum(not check() for check in self._checks) == 0

    async def _do(self) -> None:
        if self._work is None or not self._is_right():
            return
        self._fault.set_text("")
        self._button.props("loading")
        self._dialog.props("persistent")
        try:
            said = await self._work()
        except (NotDone, ValueError) as error:
            self._fault.set_text(str(error))
            return
        finally:
            self._button.props(remove="loading")
            self._dialog.props(remove="persistent")
        notify(said)
        self._dialog.submit(True)


def number_between(low: int, high: int, what: str) -> Validate:
    def check(text: str) -> Fault | None:
        if not text.strip().lstrip("-").isdecimal() or not low <= int(text) <= high:
            return f"{what} is a number from {low:,} to {high:,}"
        return None

    return check


def fault_of(parse: Callable[[str], object]) -> Validate:
    """Make a check from a parser whose ValueError describes the fault."""

    def check(text: str) -> Fault | None:
        try:
            parse(text)
        except ValueError as error:
            return str(error)
        return None

    return check
