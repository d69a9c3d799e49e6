"""Runs of reassignments are files of the console's machine: who may cancel them is looked at by the console."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from odradek.apps.console.access import Access
from odradek.apps.console.changes import Changes
from odradek.apps.console.console import Console
from odradek.apps.console.feeds import Feeds
from odradek.apps.console.guard import Guard
from odradek.apps.console.options import ConsoleOptions
from odradek.apps.console.reassigner import Reassigner
from odradek.apps.console.screens.reassign import cancel_run
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.errors import FatalError
from odradek.model.acls import AclOperation


class _Rights:
    def __init__(self, *rights: AclOperation) -> None:
        self._rights = frozenset(rights)

    def value(self) -> frozenset[AclOperation]:
        return self._rights


class _Cancelled(Reassigner):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []

    def cancel(self, client: object, run_id: str) -> None:
        self.ids.append(run_id)


def _console(monkeypatch: pytest.MonkeyPatch, user: str | None, *rights: AclOperation) -> Console:
    login: Mapping[str, str] | None = None if user is None else {"security.protocol": "SASL_SSL"}
    options = ConsoleOptions("b:1", login=login, data=Path("data"))
    monkeypatch.setattr(Console, "rights", _Rights(*rights))
    access = Access("b:1")
    changes, guard = Changes(SYSTEM_CLOCK, read_only=False), Guard(options, SYSTEM_CLOCK)
    return Console(options, access, Feeds(access), changes, guard, _Cancelled(), user=user)


@pytest.mark.parametrize("rights", [(), (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)])
def test_a_user_who_may_not_alter_the_cluster_cancels_no_run(
    monkeypatch: pytest.MonkeyPatch, rights: tuple[AclOperation, ...]
) -> None:
    console = _console(monkeypatch, "ottla", *rights)
    with pytest.raises(FatalError, match="needs the right Alter on the cluster, which User:ottla lacks"):
        cancel_run(console, cast(Any, None), "20261117T021005-4711")
    assert cast(_Cancelled, console.reassigner).ids == []


@pytest.mark.parametrize(("user", "rights"), [("admin", (AclOperation.ALTER,)), (None, ())])
def test_who_may_alter_the_cluster_and_a_console_without_users_cancel_it(
    monkeypatch: pytest.MonkeyPatch, user: str | None, rights: tuple[AclOperation, ...]
) -> None:
    console = _console(monkeypatch, user, *rights)
    cancel_run(console, cast(Any, None), "20261117T021005-4711")
    assert cast(_Cancelled, console.reassigner).ids == ["20261117T021005-4711"]
