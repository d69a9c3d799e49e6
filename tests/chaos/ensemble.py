"""A ZooKeeper ensemble of three on loopback, whose members can be killed: its leader above all."""

from pathlib import Path
from types import TracebackType
from typing import Self

from odradek.local.zookeeper_server import EmbeddedZooKeeper, free_port

_MEMBERS = (1, 2, 3)


class Ensemble:
    def __init__(self, directory: Path) -> None:
        addresses = "".join(f"server.{n}=127.0.0.1:{free_port()}:{free_port()}\n" for n in _MEMBERS)
        settings = f"initLimit=20\nsyncLimit=10\n{addresses}"
        self._members = {n: EmbeddedZooKeeper(directory / f"zookeeper-{n}", settings=settings) for n in _MEMBERS}
        for n in _MEMBERS:
            data = directory / f"zookeeper-{n}" / "data"
            data.mkdir(parents=True)
            (data / "myid").write_text(f"{n}\n")

    @property
    def connect(self) -> str:
        return ",".join(member.connect for member in self._members.values())

    def __enter__(self) -> Self:
        for member in self._members.values():
            member.spawn()
        for member in self._members.values():
            member.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members.values():
            member.kill()

    def leader(self) -> int | None:
        return next((n for n, member in self._members.items() if member.mode() == "leader"), None)

    def kill(self, number: int) -> None:
        self._members[number].kill()

    def start(self, number: int) -> None:
        self._members[number].start()
