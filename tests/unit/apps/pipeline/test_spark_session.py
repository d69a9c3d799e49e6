"""Session of a pipeline: impossible settings are refused at once."""

from pathlib import Path

import pytest

from odradek.apps.pipeline.session import SparkTarget, start_session
from odradek.base.errors import FatalError


@pytest.mark.parametrize(
    ("remote", "told"),
    [
        ("sc://127.0.0.1:1", "no server answers there \\(Connection refused\\)"),
        ("sc://127.0.0.1:99999", "no server answers there \\(Port out of range"),
        ("sc://", "is not a Spark Connect server: sc://HOST:PORT"),
        ("spark://127.0.0.1:7077", "is not a Spark Connect server: sc://HOST:PORT"),
    ],
)
def test_a_connect_server_that_is_none(remote: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=told):
        start_session("p", SparkTarget(remote=remote), {}, tmp_path)
