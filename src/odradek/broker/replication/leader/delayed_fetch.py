"""A fetch that waits until its partitions have `fetch.min.bytes`, for `fetch.max.wait.ms` at most."""

from collections.abc import Callable, Hashable, Iterable, Sequence

from odradek.broker.purgatory.purgatory import DelayedOperation
from odradek.broker.replication.leader.fetch_reader import FetchOutcome, FetchReader, FetchTarget, FetchTerms
from odradek.model.topology import TopicPartition


def is_enough(outcomes: Sequence[FetchOutcome], min_bytes: int) -> bool:
    """Errors, divergence and a better replica are answered at once: waiting would not help the fetcher."""
    size = 0
    for outcome in outcomes:
        if outcome.error or outcome.diverging is not None or outcome.read_from >= 0:
            return True
        size += outcome.size
    return size >= min_bytes


class DelayedFetch(DelayedOperation):
    """A fetch that waits for records: checked again whenever one of its partitions changes."""

    __slots__ = ("_answer", "_outcomes", "_reader", "_targets", "_terms")

    def __init__(
        self,
        reader: FetchReader,
        targets: Sequence[FetchTarget],
        terms: FetchTerms,
        answer: Callable[[list[FetchOutcome]], None],
    ) -> None:
        super().__init__(terms.max_wait_ms)
        self._reader = reader
        self._targets = {target.partition: target for target in targets}
        self._terms = terms
        self._answer = answer
        self._outcomes: list[FetchOutcome] | None = None

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        return self._targets

    def try_complete_for(self, key: Hashable) -> bool:
        """Most events don't complete most fetches: the partition of the event shows whether this one can."""
        assert isinstance(key, TopicPartition)
        return self._reader.has_moved((self._targets[key],), self._terms) and self._read_enough()

    def try_complete(self) -> bool:
        return self._reader.has_moved(self._targets.values(), self._terms) and self._read_enough()

    def _read_enough(self) -> bool:
        outcomes = self._read()
        if not is_enough(outcomes, self._terms.min_bytes):
            return False
        self._outcomes = outcomes
        return self.force_complete()

    def on_complete(self) -> None:
        """Answer with the results; a fetch whose time is up takes the records present now."""
        outcomes = self._outcomes
        self._answer(outcomes if outcomes is not None else self._read())

    def _read(self) -> list[FetchOutcome]:
        return self._reader.read([*self._targets.values()], self._terms, again=True)
