"""Proof that the transaction coordinator knows of a transaction, before its first append to a partition.

A verification begins with a guard, which the partition keeps for the producer. A marker, or the first append of the
transaction, takes the guard away. So an append with a guard that the partition no longer has comes too late: a marker
has been written since the coordinator was asked (KAFKA-14884), and what it would append nobody would ever end.

Pure. Touched under the partition's lock.
"""

from odradek.base.errors import ErrorCode, KafkaError


class VerificationGuard:
    """One verification, known by its identity. `users` is the number of requests that wait for the answer."""

    __slots__ = ("users",)

    def __init__(self) -> None:
        self.users = 0


VERIFICATION_OFF = VerificationGuard()
"""The guard of appends that need no proof: `transaction.partition.verification.enable` is false."""


class Verifications(dict[int, VerificationGuard]):
    """The guards of one partition by producer id. Nearly always empty."""

    __slots__ = ()

    def begin(self, producer_id: int) -> VerificationGuard:
        guard = self.setdefault(producer_id, VerificationGuard())
        guard.users += 1
        return guard

    def end(self, producer_id: int, guard: VerificationGuard) -> None:
        """One of the requests has its answer and has used it."""
        guard.users -= 1
        if not guard.users and self.get(producer_id) is guard:
            del self[producer_id]

    def check(self, producer_id: int, guard: VerificationGuard | None) -> None:
        """KafkaError unless the guard is still the producer's."""
        if guard is not VERIFICATION_OFF and (guard is None or self.get(producer_id) is not guard):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
