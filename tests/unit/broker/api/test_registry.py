"""Handlers are imported one by one, when they are asked for: none may be missing, and none may say other versions than
ApiVersions does."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from odradek.broker.api import handlers, registry
from odradek.broker.api.registry import HANDLERS, LATER, NOT_SERVED, SERVED, handler_of, handles, load_all
from odradek.protocol.api_keys import APIS, ApiKey


def test_every_api_that_is_offered_has_a_handler_of_these_versions() -> None:
    load_all()
    offered = {key: (api.min_version, api.max_version) for key, api in SERVED.items()}
    assert {key: (handler.min_version, handler.max_version) for key, handler in HANDLERS.items()} == offered
    assert APIS.keys() - SERVED.keys() == NOT_SERVED


def test_every_module_of_handlers_is_that_of_an_api() -> None:
    (directory,) = handlers.__path__
    modules = {path.stem for path in Path(directory).glob("*.py")} - {"__init__"}
    assert modules == {api.key.name.lower() for api in SERVED.values()}


@pytest.mark.parametrize("key", [ApiKey.ENVELOPE, 999, -1])
def test_an_api_that_is_not_served(key: int) -> None:
    assert handler_of(key) is None


def test_each_handler_can_be_the_first_to_be_imported() -> None:
    """In a process of its own, since this one has imported them all; in the order opposite to the usual one."""
    program = (
        "from odradek.broker.api.registry import SERVED, handler_of\n"
        "for key in reversed(SERVED): assert handler_of(key).key == key\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_handler_is_not_found_before_its_module_is_loaded_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads look for it at any time, and it calls functions that its module defines further down."""
    found: list[object] = []

    def import_in_part(name: str) -> ModuleType:
        handles(ApiKey.METADATA, versions="0-12", may_block=False)(lambda request, ctx: LATER)
        found.append(registry.HANDLERS.get(ApiKey.METADATA))
        return ModuleType(name)

    monkeypatch.setattr(registry, "HANDLERS", {})
    monkeypatch.setattr(registry, "_declared", {}, raising=False)
    monkeypatch.setattr(registry, "import_module", import_in_part)
    assert handler_of(ApiKey.METADATA) is registry.HANDLERS[ApiKey.METADATA]
    assert found == [None]
