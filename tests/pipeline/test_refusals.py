"""Refusals of `odradek pipeline run` before it starts Spark, as a person sees them."""

import subprocess
import sys
from pathlib import Path

from odradek.apps.pipeline.runner import claim

from .conftest import TopicMaker
from .pipeline_stage import declare

PROJECT = """
[pipeline]
name = "{name}"
bootstrap = "{bootstrap}"
checkpoint = "{checkpoint}"
[sources.lines]
topic = "{topic}"
format = "text"
schema = "line STRING"
[sinks.table]
from = "lines"
table = "table"
"""


def test_the_checkpoint_of_another_pipeline(bootstrap: str, new_topic: TopicMaker, tmp_path: Path) -> None:
    topic, checkpoint = new_topic(), tmp_path / "checkpoint"
    first, second = f"first-{topic}", f"second-{topic}"
    for name in (first, second):
        text = PROJECT.format(name=name, bootstrap=bootstrap, checkpoint=checkpoint, topic=topic)
        pipeline = declare(tmp_path / name, text)
        if name == first:
            claim(pipeline, lambda note: None)

    command = [sys.executable, "-m", "odradek", "pipeline", "run", str(tmp_path / second)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        f"error: the checkpoint in {checkpoint} belongs to pipeline '{first}', not '{second}': "
        'choose another directory with checkpoint = "…", or start over by removing this one and the tables'
    )
    assert not (tmp_path / second / "table").exists()
