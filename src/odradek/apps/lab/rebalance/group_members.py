"""The members of one group, in any of the designs, under one interface.

A member that may be cut off or crash reaches ZooKeeper through a line of its own.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from odradek.apps.lab.line import Line
from odradek.apps.lab.rebalance.joined import JoinedConsumer
from odradek.apps.lab.rebalance.recorded_events import Recorder
from odradek.apps.legacy.assigned import AssignedConsumer
from odradek.apps.legacy.consumer import ZooKeeperConsumer
from odradek.apps.legacy.coordinator import GroupCoordinator
from odradek.apps.legacy.member import Member, MemberSettings

DESIGNS = ("one", "two", "three")
_COORDINATORS = 2
_ENDERS = 16
# A hundred members that start at once take long on a busy machine.
_CONNECTION_MS_MAX = 30_000
_DESIGN_MEMBERS: dict[str, type[Member]] = {"one": ZooKeeperConsumer, "two": AssignedConsumer}


class MemberHandle(Protocol):
    """A member of a group, with the faults that it can have."""

    @property
    def id(self) -> str: ...

    def start(self) -> None: ...

    def close(self) -> None:
        """Leave the group."""

    def crash(self) -> None: ...

    def cut(self) -> None:
        """Cut the member off from its coordinator; it continues reading."""

    def heal(self) -> None: ...

    def halt(self) -> None:
        """Stop all work: the measurement is over."""

    def end(self) -> None:
        """Remove the rest of a halted member."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Cluster of a group."""

    group: str
    topic: str
    partitions: int
    servers: Sequence[str]
    """ZooKeeper's; members take turns."""
    chroot: str
    bootstrap: Sequence[tuple[str, int]]
    session_timeout_ms: int


class _ThroughZooKeeper:
    """A member of design one or two."""

    def __init__(self, member: Member, line: Line | None) -> None:
        self.id = member.id
        self._member = member
        self._line = line
        self._left = False

    def start(self) -> None:
        self._member.start()

    def close(self) -> None:
        self._left = True
        self._member.close()

    def crash(self) -> None:
        self.cut()
        self._member.abandon()

    def cut(self) -> None:
        assert self._line is not None, "only members with a line of their own can be cut off"
        self._line.cut()

    def heal(self) -> None:
        assert self._line is not None
        self._line.heal()

    def halt(self) -> None:
        self._member.abandon()

    def end(self) -> None:
        if not self._left:
            self._member.close()
        if self._line is not None:
            self._line.close()


class GroupMembers:
    def __init__(self, design: str, setting: Setting, recorder: Recorder) -> None:
        self._design = design
        self._setting = setting
        self._recorder = recorder
        self._members: list[MemberHandle] = []
        self._coordinators: list[GroupCoordinator] = []

    def start(self) -> None:
        """Start the services that a group needs besides members."""
        if self._design == "two":
            for number in range(_COORDINATORS):
                coordinator = GroupCoordinator(
                    self._setting.servers[-1 - number] + self._setting.chroot,
                    self._setting.group,
                    name=f"coordinator {number}",
                    session_timeout_ms=self._setting.session_timeout_ms,
                    observer=self._recorder,
                )
                self._coordinators.append(coordinator)
                coordinator.start()

    def new_member(self, *, on_a_line: bool = False) -> MemberHandle:
        """A new member, not yet started."""
        number = len(self._members)
        member = self._joined(number) if self._design == "three" else self._registered(number, on_a_line)
        self._members.append(member)
        return member

    def end(self) -> None:
        """Halt all members before the first one leaves, so that none is notified of the others' leaving."""
        with ThreadPoolExecutor(_ENDERS, "member end") as enders:
            list(enders.map(lambda member: member.halt(), self._members))
            list(enders.map(lambda coordinator: coordinator.close(), self._coordinators))
            list(enders.map(lambda member: member.end(), self._members))

    def _joined(self, number: int) -> MemberHandle:
        setting = self._setting
        return JoinedConsumer(
            setting.bootstrap,
            setting.group,
            setting.topic,
            setting.partitions,
            name=_name(number),
            session_timeout_ms=setting.session_timeout_ms,
            observer=self._recorder,
        )

    def _registered(self, number: int, on_a_line: bool) -> MemberHandle:
        setting = self._setting
        server = setting.servers[number % len(setting.servers)]
        line = None
        if on_a_line:
            host, _, port = server.partition(":")
            line = Line((host, int(port)))
            server = line.connect
        settings = MemberSettings(
            zookeeper_session_timeout_ms=setting.session_timeout_ms,
            zookeeper_connection_timeout_ms=_CONNECTION_MS_MAX,
        )
        member = _DESIGN_MEMBERS[self._design](
            server + setting.chroot,
            setting.group,
            [setting.topic],
            settings=settings,
            member_id=_name(number),
            observer=self._recorder,
        )
        return _ThroughZooKeeper(member, line)


def _name(number: int) -> str:
    return f"member-{number:04}"
