from typing import Any, get_args

from odradek.broker.controller.core import decisions
from odradek.broker.controller.core.effects import Effect
from odradek.broker.controller.core.events import Event
from odradek.broker.controller.effect_runner import EffectRunner
from odradek.model.topology import ControllerTerm


def test_every_effect_can_be_performed_and_every_event_decided() -> None:
    nothing: Any = None
    performer = EffectRunner(nothing, nothing, nothing, ControllerTerm(1, 1), schedule=nothing, is_over=lambda: False)
    assert set(get_args(Effect)) == performer._actions.keys()
    assert set(get_args(Event)) == decisions._DECISIONS.keys()
