"""Bugs of transactions on purpose, those of other systems among them: the simulator must find them."""

from collections.abc import Callable
from typing import Any

import pytest

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.groups import group_offsets
from odradek.broker.coordinator.groups.group_entry import GroupWriter, OffsetWrite
from odradek.broker.coordinator.state import state_log_writer
from odradek.broker.coordinator.state.state_log import StateLog
from odradek.broker.coordinator.transactions import marker_sender, transaction_log
from odradek.broker.coordinator.transactions.core import decisions
from odradek.broker.coordinator.transactions.core.transaction import Transaction
from odradek.broker.coordinator.transactions.marker_sender import MarkerSender
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.coordinator.transactions.transaction_log import TransactionLog
from odradek.broker.log.core.cleaned_transactions import CleanedTransactions
from odradek.broker.log.core.producer_state import ProducerStates
from odradek.broker.log.core.verification import VERIFICATION_OFF, Verifications
from odradek.broker.log.files import log_truncation
from odradek.broker.log.files.log_files import LogFiles
from odradek.broker.log.files.partition_log import PartitionLog
from odradek.broker.replication.committed_log import CommittedLog
from odradek.broker.replication.leader.transactional_appends import TransactionalAppends
from odradek.model.topology import NO_LEADER

Plant = Callable[[pytest.MonkeyPatch], None]


def without_verification(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionalAppends, "reconfigure", lambda self, config: setattr(self, "is_enabled", False))


def without_replay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionLog, "replay", lambda self, partition: {})


def ends_are_left_half_done(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionCoordinator, "loaded", lambda self, entry: None)


def answered_before_replication(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transaction_log, "_ALL_REPLICAS", 1)


def without_fencing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decisions, "_wrong_producer", lambda transaction, producer: ErrorCode.NONE)


def stable_means_replicated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CommittedLog, "last_stable_offset", lambda self, watermark: watermark)


def markers_are_sent_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MarkerSender, "_retry_later", lambda self, part, before=None: None)


def aborted_ones_are_not_told(patch: pytest.MonkeyPatch) -> None:
    read = PartitionLog.read_committed

    def without_list(self: Any, *args: Any, **options: Any) -> Any:
        found, _ = read(self, *args, **options)
        return found, ()

    patch.setattr(PartitionLog, "read_committed", without_list)


def without_timeout(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionCoordinator, "abort_timed_out", lambda self: None)


def offsets_count_at_once(patch: pytest.MonkeyPatch) -> None:
    apply = OffsetWrite.apply

    def applied(self: Any) -> None:
        self.producer = None
        apply(self)

    patch.setattr(OffsetWrite, "apply", applied)


def offsets_of_aborted_ones_count(patch: pytest.MonkeyPatch) -> None:
    end = GroupWriter.end_transaction

    def committed_always(self: Any, held: Any, producer_id: int, *, committed: bool) -> None:
        end(self, held, producer_id, committed=True)

    patch.setattr(GroupWriter, "end_transaction", committed_always)


def epochs_stay_in_version_2(patch: pytest.MonkeyPatch) -> None:
    """Ends of transactions as in version 1, while leaders still add partitions by themselves."""
    patch.setattr(decisions, "EPOCH_BUMP_VERSION", 99)


def offsets_of_any_generation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(group_offsets, "may_commit_in_transaction", lambda group, committer: ErrorCode.NONE)


def guards_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Verifications, "check", lambda self, producer_id, guard: None)


def offsets_are_not_verified(patch: pytest.MonkeyPatch) -> None:
    verify = StateLog.verify

    def verified(self: Any, partition: int, producer: Any, done: Callable[..., None], *, add: bool) -> None:
        if add:
            verify(self, partition, producer, done, add=True)
        else:
            done(ErrorCode.NONE, VERIFICATION_OFF)

    patch.setattr(StateLog, "verify", verified)


def aborts_do_not_fence(patch: pytest.MonkeyPatch) -> None:
    fence = decisions.fence

    def without_bump(transaction: Any, now_ms: int) -> Any:
        return fence(transaction, now_ms)._replace(producer_epoch=transaction.producer_epoch)

    patch.setattr(decisions, "fence", without_bump)


def failed_moves_stay_pending(patch: pytest.MonkeyPatch) -> None:
    write = TransactionCoordinator._write

    def written(self: Any, entry: Any, to: Any, answer: Callable[..., None], why: str) -> None:
        def answered(error: ErrorCode, moved: Any) -> None:
            if error and not entry.is_gone:
                entry.move = to
            answer(error, moved)

        write(self, entry, to, answered, why)

    patch.setattr(TransactionCoordinator, "_write", written)


def repeated_markers_are_refused(patch: pytest.MonkeyPatch) -> None:
    check = ProducerStates.check_marker

    def checked(self: Any, marker: Any) -> bool:
        if not check(self, marker):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        return True

    patch.setattr(ProducerStates, "check_marker", checked)


def aborted_ones_are_out_of_order(patch: pytest.MonkeyPatch) -> None:
    read = PartitionLog.read_committed

    def reversed_list(self: Any, *args: Any, **options: Any) -> Any:
        found, aborted = read(self, *args, **options)
        return found, tuple(reversed(aborted))

    patch.setattr(PartitionLog, "read_committed", reversed_list)


def markers_go_with_the_first_cleaning(patch: pytest.MonkeyPatch) -> None:
    def dropped(self: Any, header: Any, kind: Any, *, is_empty: bool) -> bool:
        return True

    patch.setattr(CleanedTransactions, "may_drop_marker", dropped)


def producers_survive_truncation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_truncation, "rebuild_producers", lambda *_: None)


def markers_of_deleted_topics_wait(patch: pytest.MonkeyPatch) -> None:
    """A partition that is not in the metadata has no leader yet."""
    route = MarkerSender._route

    def routed(self: Any, ending: Any, partitions: Any) -> None:
        gone = [tp for tp in partitions if self._metadata.image.partition(tp) is None]
        if gone:
            self._send_to(marker_sender._Part(ending, gone, NO_LEADER))
        route(self, ending, [tp for tp in partitions if tp not in gone])

    patch.setattr(MarkerSender, "_route", routed)


def expired_ids_are_one_batch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(state_log_writer, "_TOO_LARGE", frozenset())


def last_epoch_is_given(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transaction, "is_exhausted", property(lambda self: False))


def fence_raises_twice(patch: pytest.MonkeyPatch) -> None:
    fence = decisions.fence

    def fenced(transaction: Any, now_ms: int) -> Any:
        return fence(transaction, now_ms)._replace(producer_epoch=transaction.producer_epoch + 2)

    patch.setattr(decisions, "fence", fenced)


def answer_has_former_id(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decisions, "next_producer", lambda moved: decisions.Producer(moved.producer_id, moved.producer_epoch))


def log_goes_on_after_failed_append(patch: pytest.MonkeyPatch) -> None:
    """The producers' state changes before the write, and what was written before it failed stays in the file."""
    write = PartitionLog._write

    def written(self: Any, data: Any, infos: Any, max_timestamp: int, staged: Any) -> None:
        if staged.entries:
            self.producers.commit(staged, infos[-1].last_offset + 1)
        write(self, data, infos, max_timestamp, staged)

    patch.setattr(PartitionLog, "_write", written)
    patch.setattr(LogFiles, "undo_append", lambda *_: None)
    patch.setattr(LogFiles, "fail", LogFiles.storage_error)


TRANSACTION_MUTANTS: dict[str, Plant] = {
    "KAFKA-14402: a batch of a transaction is appended without asking its coordinator": without_verification,
    "a transaction coordinator that takes over begins with nothing": without_replay,
    "a transaction coordinator that takes over leaves decided ends half done": ends_are_left_half_done,
    "the end of a transaction is answered when the coordinator alone has it": answered_before_replication,
    "a fenced producer may go on": without_fencing,
    "the last stable offset is the high watermark": stable_means_replicated,
    "a marker that is refused or lost is not sent again": markers_are_sent_once,
    "aborted transactions are not told to readers of committed records": aborted_ones_are_not_told,
    "a transaction without its producer stays open": without_timeout,
    "offsets that a transaction commits count before its end": offsets_count_at_once,
    "offsets of an aborted transaction count": offsets_of_aborted_ones_count,
    "KIP-447: a member of a former generation commits offsets in a transaction": offsets_of_any_generation,
    "version 2: the epoch stays when a transaction ends": epochs_stay_in_version_2,
    "KAFKA-14884: verified, then appended behind the marker": guards_are_not_checked,
    "KAFKA-15449: offsets in a transaction are not verified": offsets_are_not_verified,
    "KAFKA-5231: an abort by the coordinator doesn't fence the producer": aborts_do_not_fence,
    "KAFKA-7519: a move that can't be written stays pending": failed_moves_stay_pending,
    "KAFKA-19999: a marker that is written already is refused": repeated_markers_are_refused,
    "franz-go 1348: the list of aborted transactions is out of order": aborted_ones_are_out_of_order,
    "KAFKA-14055: compaction drops markers of transactions with records": markers_go_with_the_first_cleaning,
    "KAFKA-12153: producer state keeps what was truncated": producers_survive_truncation,
    "KAFKA-6052, KAFKA-5202: markers for a deleted topic are waited for": markers_of_deleted_topics_wait,
    "KAFKA-13099: ids that expire together have to be one batch": expired_ids_are_one_batch,
    "KAFKA-9666, KAFKA-20090: a producer is given the last epoch": last_epoch_is_given,
    "KAFKA-19367: a fence raises the epoch twice": fence_raises_twice,
    "KAFKA-18660: after the last epoch the id of before is answered": answer_has_former_id,
    "KAFKA-6683, KAFKA-7866: a log goes on after a failed append, with what that left": log_goes_on_after_failed_append,
}
