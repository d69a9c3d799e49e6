"""A Spark session as a process of its own, which carries out one request after the other."""

import json
import os
import selectors
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

READER: Final = Path(__file__).with_name("reader_process.py")
PATIENCE_S: Final = 900.0


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    process: subprocess.Popen[str]

    @classmethod
    def start(cls, connector: str, python: Path) -> "Session":
        """`connector` is the one it is for: kafka needs its jars, which Ivy keeps in the environment."""
        command = [str(python), str(READER), connector, str(python.parent.parent / "ivy")]
        environment = os.environ | {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True, env=environment)
        return cls(connector, process)

    def ask(self, work: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(work) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._line())
        if "error" in answer:
            raise SystemExit(f"{self.name}: {answer['error']}")
        return answer

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _line(self) -> str:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            deadline = time.monotonic() + PATIENCE_S
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise SystemExit(f"{self.name}: no answer within {PATIENCE_S:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: ended with code {self.process.wait()}")
        return line
