"""Verification that the transaction coordinator knows a transaction, before its first append to a partition.

A verification begins with a guard, which the partition keeps for the producer. A marker, or the first append of the
transaction, removes the guard. So an append whose guard was removed comes too late: a marker has been written since the
coordinator answered (KAFKA-14884), and no marker would ever end what it appends.

If each end of a transaction raises the epoch (version 2), a producer may begin the next transaction before the markers
of the previous one are written: they have the epoch of the next transaction, and keep its guard.

Pure. Used under the partition's lock.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.protocol.transaction_markers import EndTransactionMarker


class VerificationGuard:
    """One verification, known by its identity. `users` is the number of requests that wait for the answer."""

    __slots__ = ("producer_epoch", "users")

    def __init__(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.users = 0


VERIFICATION_OFF = VerificationGuard(-1)
"""The guard of appends that need no proof: `transaction.partition.verification.enable` is false."""


class Verifications(dict[int, VerificationGuard]):
    """The guards of one partition by producer id. Nearly always empty."""

    __slots__ = ()

    def begin(self, producer_id: int, producer_epoch: int) -> VerificationGuard:
        """The guard of the producer's newest epoch is kept; one of an older epoch proves nothing."""
        guard = self.get(producer_id)
        if guard is None or guard.producer_epoch < producer_epoch:
            guard = self[producer_id] = VerificationGuard(producer_epoch)
        elif guard.producer_epoch > producer_epoch:
            guard = VerificationGuard(producer_epoch)
        guard.users += 1
        return guard

    def end_transaction(self, marker: EndTransactionMarker) -> None:
        guard = self.get(marker.producer_id)
        if guard is not None and not (marker.bumps_epoch and guard.producer_epoch >= marker.producer_epoch):
            del self[marker.producer_id]

    def appended(self, producer_id: int, producer_epoch: int, *, is_open: bool) -> None:
        """A batch of the producer, or a marker, is in the log."""
        guard = self.get(producer_id)
        if guard is not None and (is_open or guard.producer_epoch < producer_epoch):
            del self[producer_id]

    def end(self, producer_id: int, guard: VerificationGuard) -> None:
        """One of the requests has its answer and has used it."""
        guard.users -= 1
        if not guard.users and self.get(producer_id) is guard:
            del self[producer_id]

    def check(self, producer_id: int, guard: VerificationGuard | None) -> None:
        """KafkaError unless the guard is still the producer's."""
        if guard is not VERIFICATION_OFF and (guard is None or self.get(producer_id) is not guard):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
