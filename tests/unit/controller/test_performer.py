from typing import Any, get_args

from odradek.controller import decisions
from odradek.controller.effects import Effect
from odradek.controller.events import Event
from odradek.controller.performer import Performer
from odradek.model.topology import ControllerTerm


def test_every_effect_can_be_performed_and_every_event_decided() -> None:
    nothing: Any = None
    performer = Performer(nothing, nothing, nothing, ControllerTerm(1, 1), schedule=nothing, is_over=lambda: False)
    assert set(get_args(Effect)) == performer._actions.keys()
    assert set(get_args(Event)) == decisions._DECISIONS.keys()
