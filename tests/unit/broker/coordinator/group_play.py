"""A stage for one group: tests say what members do and what time it is, and read what was said and written."""

from collections import deque
from collections.abc import Generator
from typing import TypeVar

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.groups.core import member_checks, rebalance
from odradek.broker.coordinator.groups.core.group import Group, GroupState
from odradek.broker.coordinator.groups.core.group_records import GroupMetadataValue
from odradek.broker.coordinator.groups.core.group_requests import (
    Effect,
    GroupRules,
    JoinAnswer,
    Joining,
    Moment,
    NoteGroup,
    Rebalanced,
    Reply,
    Stored,
    StoreGroup,
    SyncAnswer,
    Syncing,
)

T = TypeVar("T")

RULES = GroupRules(
    session_timeout_min_ms=6_000, session_timeout_max_ms=1_800_000, max_size=100, initial_rebalance_delay_ms=3_000
)
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Play:
    def __init__(self, rules: GroupRules = RULES) -> None:
        self.rules = rules
        self.now_ms = 1_000
        self.group = Group("g", self.now)
        self.joined: dict[str, JoinAnswer] = {}  # the last answer to each, by the name that the test gave it
        self.synced: dict[str, SyncAnswer] = {}
        self.stored: list[GroupMetadataValue] = []
        self.rebalanced: list[Rebalanced] = []
        self.store_error = ErrorCode.NONE
        self.stores_slowly = False  # records are settled when the test says so
        self.in_flight: deque[tuple[GroupMetadataValue, Generator[Effect, Stored, object]]] = deque()

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)

    def join(self, name: str, member_id: str | None = None, **said: object) -> JoinAnswer | None:
        """Joins as a member of that id, which is the name itself unless given. None: has to wait."""
        self.joined.pop(name, None)
        instance_id = said.pop("instance_id", None)
        values = {
            "member_id": name if member_id is None else member_id,
            "fresh_id": name,
            "instance_id": instance_id,
            "client_id": "client",
            "client_host": "/127.0.0.1",
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": (("range", b"topics of " + name.encode()),),
            **said,
        }
        joining = Joining(**values)  # type: ignore[arg-type]
        waiter = lambda answer: self.joined.__setitem__(name, answer)  # noqa: E731
        self._run(rebalance.join(self.group, joining, waiter, self.rules, self.now))
        return self.joined.get(name)

    def enter(self, *names: str) -> None:
        """New members, of the older protocol that gives them their ids at once."""
        for name in names:
            self.join(name, member_id="")

    def sync(self, name: str, assignments: dict[str, bytes] | None = None, **said: object) -> SyncAnswer | None:
        self.synced.pop(name, None)
        values = {"instance_id": None, "generation": self.group.generation, **said}
        syncing = Syncing(member_id=name, assignments=assignments or {}, **values)  # type: ignore[arg-type]
        waiter = lambda answer: self.synced.__setitem__(name, answer)  # noqa: E731
        self._run(rebalance.sync(self.group, syncing, waiter, self.rules, self.now))
        return self.synced.get(name)

    def heartbeat(self, name: str, generation: int | None = None, instance_id: str | None = None) -> ErrorCode:
        generation = self.group.generation if generation is None else generation
        return member_checks.heartbeat(self.group, name, instance_id, generation, self.now)

    def leave(self, name: str, instance_id: str | None = None, reason: str | None = None) -> ErrorCode | None:
        return self._run(rebalance.leave(self.group, name, instance_id, reason, self.rules, self.now))

    def passes(self, ms: int) -> None:
        """Time passes, and the group is woken whenever it asked for it."""
        end_ms = self.now_ms + ms
        while self.group.wake_ms <= end_ms:
            self.now_ms = max(self.now_ms, self.group.wake_ms)
            self._run(rebalance.expire(self.group, self.rules, self.now))
        self.now_ms = end_ms

    def becomes_stable(self, *names: str) -> None:
        """Form a group of these members, the first of them leading, each with its part."""
        self.enter(*names)
        while self.group.state is not GroupState.COMPLETING_REBALANCE:
            self.passes(self.rules.initial_rebalance_delay_ms)
        for name in names:
            self.sync(name, {name: b"part of " + name.encode() for name in names} if name == names[0] else None)

    def settle(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """The oldest record that is on its way is replicated, or isn't."""
        value, decision = self.in_flight.popleft()
        if not error:
            self.stored.append(value)
        self._go_on(decision, Stored(error, self.now))

    def _run(self, decision: Generator[Effect, Stored, T]) -> T | None:
        """Return the result of a decision that needn't wait for a record."""
        return self._go_on(decision, None)

    def _go_on(self, decision: Generator[Effect, Stored, T], answer: Stored | None) -> T | None:
        replies: list[Reply[JoinAnswer] | Reply[SyncAnswer]] = []
        try:
            effect = next(decision) if answer is None else decision.send(answer)
            while True:
                if isinstance(effect, StoreGroup):
                    self.in_flight.append((effect.value, decision))
                    return None
                if isinstance(effect, NoteGroup):
                    self.stored.append(effect.value)
                elif isinstance(effect, Rebalanced):
                    self.rebalanced.append(effect)
                else:
                    replies.append(effect)
                effect = next(decision)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            for reply in replies:
                reply.send()
            if self.in_flight and not self.stores_slowly:
                self.settle(self.store_error)
