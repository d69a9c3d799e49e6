"""Lines of the broker's functions that run in stories.

`cd tests && PYTHONHASHSEED=0 python -m regressions.simulated_lines 20` runs the first twenty seeds.

"""

import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import odradek
from odradek.sim.simulation import simulate

ROOMS = (
    "broker/controller/core",
    "broker/replication",
    "broker/coordinator",
    "broker/log",
)
_SOURCE = Path(odradek.__file__).parent


class LineTracer:
    """Trace function for `sys.settrace`: collects lines of functions in some files. A function whose lines have all
    run is traced no more."""

    def __init__(self, files: set[str]) -> None:
        self._files = files
        self._left: dict[CodeType, set[int]] = {}
        self.ran: dict[str, set[int]] = defaultdict(set)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in self._files or not code.co_flags & inspect.CO_NEWLOCALS:
            return None
        left = self._left.get(code)
        if left is None:
            left = self._left[code] = lines_of(code)
        return self._line if left else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            code = frame.f_code
            self._left[code].discard(frame.f_lineno)
            self.ran[code.co_filename].add(frame.f_lineno)
        return self._line


def lines_of(code: CodeType) -> set[int]:
    return {line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno}


def functions_in(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_NEWLOCALS:
                yield constant
            yield from functions_in(constant)


def main() -> None:
    files = {str(path) for room in ROOMS for path in (_SOURCE / room).rglob("*.py")}
    tracer = LineTracer(files)
    sys.settrace(tracer)
    for seed in range(int(sys.argv[1])):
        simulate(seed)
    sys.settrace(None)
    by_package: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for file in sorted(files):
        functions = functions_in(compile(Path(file).read_text(), file, "exec"))
        lines = {line for function in functions for line in lines_of(function)}
        package = by_package[str(Path(file).parent.relative_to(_SOURCE))]
        package[0] += len(lines & tracer.ran[file])
        package[1] += len(lines)
    for name, (ran, lines_in_all) in by_package.items():
        if lines_in_all:
            sys.stdout.write(f"{name}: {ran} of {lines_in_all} lines, {100 * ran / lines_in_all:.0f} %\n")


if __name__ == "__main__":
    main()
