"""Transactional clients as processes. Each has a transactional id and many lives: one that is killed, frozen or given
up has a successor with the same id, which fences it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any, Final

from chaos.transactions import Transaction, read_transactions
from class_archive import class_path
from odradek.local.java import find_java

from .producers import LOG4J
from .transaction_steps import FENCED

TIMEOUT_MS: Final = 20_000
_STOP_S_MAX: Final = 120.0
_TESTS: Final = Path(__file__).parents[3]
_JVM: Final = ("-Xms32m", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_COPIER: Final = "org.apache.kafka.tools.TransactionalMessageCopier"
_FOREVER: Final = 1_000_000_000
_RECORDS_OF_JAVA: Final = 50


@dataclass(slots=True)
class Life:
    name: str
    process: subprocess.Popen[bytes]
    printed: Path
    is_over: bool = False
    """It was killed, or ended as it may."""


class TransactionalClient:
    """Every subclass says by which command a life of it is run."""

    def __init__(self, transactional_id: str, directory: Path, bootstrap: str) -> None:
        self.transactional_id = transactional_id
        self.lives: list[Life] = []
        self.faults: list[str] = []
        self._directory = directory
        self._bootstrap = bootstrap

    def command(self, name: str) -> list[str]:
        raise NotImplementedError

    def may_end_with(self, code: int) -> bool:
        return code in (0, FENCED)

    def start(self) -> Life:
        name = f"{self.transactional_id}x{len(self.lives)}"
        printed = self._directory / f"{name}.out"
        with printed.open("wb") as output, printed.with_suffix(".err").open("wb") as errors:
            process = subprocess.Popen(
                self.command(name), stdin=subprocess.PIPE, stdout=output, stderr=errors, cwd=_TESTS
            )
        self.lives.append(Life(name, process, printed))
        return self.lives[-1]

    def revive(self) -> Life | None:
        """The next life, if the last one has ended by itself."""
        last = self.lives[-1]
        for life in self.lives:
            if not life.is_over and (code := life.process.poll()) is not None:
                life.is_over = True
                if not self.may_end_with(code):
                    self.faults.append(f"{life.name} ended with {code}, see {life.printed.with_suffix('.err')}")
        return self.start() if last.is_over else None

    def kill(self, life: Life | None = None) -> str:
        """End a life, the present one unless another is named, as a crash would."""
        life = life or self.lives[-1]
        life.is_over = True
        life.process.kill()
        life.process.wait()
        return life.name

    def may_be_frozen(self) -> bool:
        """Return whether the present life may go on later, beside a successor."""
        return True

    def freeze(self) -> Life:
        life = self.lives[-1]
        life.process.send_signal(SIGSTOP)
        return life

    def has_successor(self, frozen: Life) -> bool:
        """Return whether a later life has come so far that the frozen one may go on."""
        return True

    @staticmethod
    def thaw(life: Life) -> None:
        life.process.send_signal(SIGCONT)

    def begin_stop(self) -> None:
        for life in self.lives:
            assert life.process.stdin is not None
            life.process.stdin.close()

    def stop(self) -> None:
        for life in self.lives:
            try:
                code = life.process.wait(_STOP_S_MAX)
            except subprocess.TimeoutExpired:
                life.process.kill()
                life.process.wait()
                self.faults.append(f"{life.name} did not end within {_STOP_S_MAX:.0f} s")
                continue
            if not life.is_over and not self.may_end_with(code):
                self.faults.append(f"{life.name} ended with {code}, see {life.printed.with_suffix('.err')}")

    def kill_all(self) -> None:
        for life in self.lives:
            life.process.kill()
            life.process.wait()

    def transactions(self) -> list[Transaction]:
        found: list[Transaction] = []
        for life in self.lives:
            with life.printed.open() as lines:
                found += read_transactions(life.name, lines)
        return found


class LibrdkafkaClient(TransactionalClient):
    """A module beside this one, with its options."""

    def __init__(
        self, module: str, transactional_id: str, directory: Path, bootstrap: str, options: Mapping[str, Any]
    ) -> None:
        super().__init__(transactional_id, directory, bootstrap)
        self._module = f"cluster.faults.foreign.{module}"
        self._options = options

    def command(self, name: str) -> list[str]:
        own = {"name": name, "transactional_id": self.transactional_id, "bootstrap": self._bootstrap}
        return [sys.executable, "-m", self._module, json.dumps({**own, "timeout_ms": TIMEOUT_MS, **self._options})]


class JavaCopier(TransactionalClient):
    """Kafka's TransactionalMessageCopier for partition 0, with aborts at random. It ends when it has copied what there
    was at its start, when it has lost its id, or by an exception that nobody catches.

    It reads its committed offset before it initializes its transactions, which fences the lives before it. So it copies
    exactly once only if none of them commits in between: a life is not frozen before it is initialized, and goes on
    when a later one is.
    """

    def __init__(
        self, transactional_id: str, directory: Path, bootstrap: str, kafka_lib: Path, *, source: str, target: str
    ) -> None:
        super().__init__(transactional_id, directory, bootstrap)
        self._log4j = directory / f"{transactional_id}.log4j"
        self._log4j.write_text(LOG4J)
        self._java = [str(find_java()), *_JVM, f"-Dlog4j.configuration=file:{self._log4j}", *class_path(kafka_lib)]
        options = {
            "--broker-list": bootstrap,
            "--input-topic": source,
            "--input-partition": 0,
            "--output-topic": target,
            "--max-messages": _FOREVER,
            "--consumer-group": f"{transactional_id}-group",
            "--transaction-size": _RECORDS_OF_JAVA,
            "--transaction-timeout": TIMEOUT_MS,
            "--transactional-id": transactional_id,
        }
        self._words = [str(word) for option in options.items() for word in option]

    def command(self, name: str) -> list[str]:
        return [*self._java, _COPIER, *self._words, "--enable-random-aborts"]

    def may_end_with(self, code: int) -> bool:
        return code in (0, 1, 143)

    def may_be_frozen(self) -> bool:
        return _is_initialized(self.lives[-1])

    def has_successor(self, frozen: Life) -> bool:
        return any(_is_initialized(life) for life in self.lives[self.lives.index(frozen) + 1 :])

    def begin_stop(self) -> None:
        super().begin_stop()
        for life in self.lives:
            life.process.terminate()

    def transactions(self) -> list[Transaction]:
        return []


def _is_initialized(copier: Life) -> bool:
    """It prints nothing before its transactions are initialized."""
    return copier.printed.stat().st_size > 0
