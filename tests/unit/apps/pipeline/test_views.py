"""Functions of the user: what can't be had is told."""

from pathlib import Path

import pytest

from odradek.apps.pipeline.views import load_function
from odradek.base.errors import FatalError


def test_a_function_is_loaded_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "t.py"
    path.write_text("def twice(x): return 2 * x\nnumber = 3")
    assert load_function(path, "twice")(4) == 8
    for name in ("number", "thrice"):
        with pytest.raises(FatalError, match=rf"t\.py has no function {name}"):
            load_function(path, name)
    path.write_text("import nowhere")
    with pytest.raises(FatalError, match=r"t\.py can't be imported: ModuleNotFoundError"):
        load_function(path, "twice")
