"""A transactional producer that goes on from where the committed transactions before it ended.

It learns that before its first transaction, and anew after each abort. Its successor has the same transactional id, so
that it fences it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import Generic, TypeVar

from odradek.base.errors import ErrorCode
from odradek.broker.coordinator.transactions.core.decisions import Producer
from odradek.sim.clients.transactional_producer import Phase, TransactionalProducer

Known = TypeVar("Known")


class ResumingProducer(TransactionalProducer, ABC, Generic[Known]):
    _known: Known | None = None
    """State behind the last committed transaction, None until it is learned."""

    @property
    def is_done(self) -> bool:
        return self.phase in (Phase.NEW, Phase.READY, Phase.SEEKING)

    def _act(self, chance: Random) -> None:
        if self.phase is Phase.READY and self._known is None:
            self.phase = Phase.SEEKING
        if self.phase is Phase.SEEKING:
            self._seek()
        else:
            self._go_on(chance)

    def _go_on(self, chance: Random) -> None:
        super()._act(chance)

    @abstractmethod
    def _seek(self) -> None:
        """Learn the state, or ask for it; `_found` takes it."""

    def _found(self, known: Known) -> None:
        self._known = known
        self.phase = Phase.READY

    @abstractmethod
    def _after_commit(self) -> Known | None:
        """Return the state behind the transaction that has just been committed."""

    def _ended(self, error: ErrorCode, producer: Producer | None) -> None:
        committed = self._commits
        super()._ended(error, producer)
        if not error and self.is_done:
            self._known = self._after_commit() if committed else None

    def _abandon(self) -> None:
        super()._abandon()
        self._known = None

    def _abort(self) -> None:
        super()._abort()
        self._known = None


Resuming = TypeVar("Resuming", bound=TransactionalProducer)


def without_fenced(producers: Sequence[Resuming]) -> list[Resuming]:
    """Return the last producer, which goes on, and those before it that have not learned yet that they are replaced."""
    return [each for each in producers if each is producers[-1] or each.phase is not Phase.NEW]
