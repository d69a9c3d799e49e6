"""`odradek pipeline graph` and `test`: the graph and the tests of a project, without a broker."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.output import note
from odradek.apps.pipeline.checkpoint import make_directory
from odradek.apps.pipeline.declaration import read_pipeline
from odradek.base.errors import FatalError

ProjectArgument = Annotated[Path, Argument(metavar="PROJECT", help="The directory with pipeline.toml.")]


def graph(
    project: ProjectArgument = Path(),
    svg: Annotated[Path | None, Option("--svg", metavar="FILE", help="A file for the graph as SVG.")] = None,
) -> None:
    """Draw sources, transforms and sinks, with the records read and the rows held."""
    from odradek.apps.pipeline.graph.core.graph_svg import graph_svg
    from odradek.apps.pipeline.graph.core.pipeline_graph import graph_of
    from odradek.apps.pipeline.graph.graph_counts import counts_of
    from odradek.apps.pipeline.graph.graph_text import graph_text

    pipeline = read_pipeline(project)
    texts = {name: transform.file.read_text() for name, transform in pipeline.transforms.items()}
    nodes = graph_of(pipeline, texts, counts_of(pipeline))
    if svg is None:
        print(graph_text(nodes))
        return
    try:
        svg.write_text(graph_svg(f"pipeline {pipeline.name}", nodes))
    except OSError as error:
        raise FatalError(f"{svg} can't be written: {error.strerror}") from None
    note(f"wrote {svg}")


def run_tests(
    project: ProjectArgument = Path(),
    only: Annotated[
        str | None, Option("--only", metavar="WORDS", help="Tests whose names match, as pytest -k.")
    ] = None,
) -> None:
    """Run the project's tests (pytest) with a small local Spark. No broker is needed."""
    from odradek.apps.pipeline.session import environment_of_tests

    pipeline = read_pipeline(project)
    tests = pipeline.directory / "tests"
    if not tests.is_dir():
        raise FatalError(f"there is no directory {tests}")
    make_directory(pipeline.state_directory)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(tests),
        *(["-k", only] if only else []),
    ]
    environment = {**os.environ, **environment_of_tests(pipeline.state_directory)}
    done = subprocess.run(command, cwd=pipeline.directory, env=environment)
    if done.returncode:
        raise FatalError(f"the tests of pipeline {pipeline.name} failed (pytest ended with {done.returncode})")


def add_project_verbs(app: Noun) -> None:
    app.verb(examples=["odradek pipeline graph", "odradek pipeline graph --svg shop.svg"])(graph)
    app.verb("test", examples=["odradek pipeline test", "odradek pipeline test --only revenue"])(run_tests)
