"""Incidents of transactions, in a cluster that is healthy otherwise (`incidents`)."""

from collections.abc import Callable

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.coordinator.transactions.core.transaction import EPOCH_MAX
from odradek.model.topology import TopicPartition
from odradek.sim.broker import TRANSACTIONAL_ID_EXPIRATION_MS, SimulatedBroker
from odradek.sim.broker_requests import is_verification_answer
from odradek.sim.calm_cluster import CalmCluster
from odradek.sim.checkers.transaction_history import TransactionHistory
from odradek.sim.checkers.violation import Violation
from odradek.sim.clients.group_membership import SESSION_TIMEOUT_MS
from odradek.sim.clients.group_transformer import GroupTransformer
from odradek.sim.clients.transactional_producer import STATE, TIMEOUT_MS, Phase, TransactionalProducer
from odradek.sim.clients.transformer import is_offset_commit
from odradek.sim.network import Message

_ROUNDS_MAX = 60
_PAUSE_ROUNDS = 40
"""Pause of a member that is expelled meanwhile: together with its session, shorter than its transaction may last."""
_EXPIRING_IDS = 24
_EXPIRY_ROUNDS_MAX = 300
"""A fetch gets no more than a segment, which may have two records."""
_EPOCHS_LEFT_MAX = 3
_LIVES = 14
_DOOMED = 901


class TransactionIncidents:
    """Each public method is a step of a story."""

    def __init__(self, calm: CalmCluster) -> None:
        self._calm = calm
        self._cluster = calm.cluster

    # ---- batches

    def verified_batch_waits(self) -> None:
        """A leader gets the answer to its verification of a batch when the transaction has been aborted, with its
        marker (KAFKA-14884)."""
        for _ in range(_ROUNDS_MAX):
            writers = [producer for producer in self._cluster.transactional if producer.is_writing]
            answers = [each for each in self._cluster.network.messages if is_verification_answer(each.text)]
            if writers and answers:
                break
            self._calm.rounds(1)
        else:
            return
        for answer in answers:
            self._cluster.network.take_out(answer)
        for producer in writers:
            producer.abort_in_flight()
        self._calm.until(lambda: all(producer.is_done for producer in writers))
        for answer in answers:
            self._cluster.trace.append(f"arrives late: {answer.text}")
            answer.deliver()
        self._calm.rounds(1)

    # ---- offsets in transactions

    def late_offset_arrives(self) -> None:
        """A program gives up the commit of its offset and aborts; the commit arrives before it begins anew
        (KAFKA-15449)."""
        self._calm.write()
        late = self._take_out(is_offset_commit)
        sent_by = [each for each in self._cluster.copying.transformers if each.phase is Phase.COMMITTING_OFFSETS]
        if late is None or not sent_by:
            return
        sent_by[0].abort_and_rest()
        if self._calm.until(lambda: sent_by[0].phase is Phase.NEW):
            self._cluster.trace.append(f"arrives late: {late.text}")
            late.deliver()
            self._calm.rounds(1)

    def _take_out(self, is_wanted: Callable[[str], bool]) -> Message | None:
        """Let the programs that copy act until one has sent such a message; its sender takes it for lost."""
        network = self._cluster.network
        for _ in range(_ROUNDS_MAX):
            for _ in range(2):  # the first time they may only notice that all is written
                self._cluster.copying.transformer_acts()
            found = next((message for message in network.messages if is_wanted(message.text)), None)
            if found is not None:
                network.lose(found)
                return found
            self._calm.rounds(1)
        return None

    def owner_is_expelled(self) -> None:
        """A member of a group of programs that copy pauses before the end of its transaction, its session passes, and
        another one gets its partition (KIP-447)."""
        members = [each for each in self._cluster.copying.transformers if isinstance(each, GroupTransformer)]
        for member in members:
            member.pauses_in, member.pause_to_come = Phase.ENDING, _PAUSE_ROUNDS
        self._calm.write()
        if self._calm.until(lambda: any(member.pauses_in_transaction for member in members)):
            for member in members:
                member.pause_to_come = 0
            self._cluster.trace.append("the sessions of the programs that copy pass")
            self._cluster.wait(SESSION_TIMEOUT_MS + 1)
            self._calm.rounds(_PAUSE_ROUNDS)

    # ---- ids, epochs, topics

    def epochs_run_out(self) -> None:
        """Producers come to the last of their epochs, die, and have their transactions time out."""
        for producer in self._cluster.transactional:
            coordinator = self._coordinator()
            left = self._calm.chance.randint(1, _EPOCHS_LEFT_MAX)
            if coordinator is not None:
                coordinator.use_up_epochs(producer.transactional_id, EPOCH_MAX - left)
        for _ in range(_LIVES):
            self._calm.rounds(self._calm.chance.randint(1, 12))
            luck = self._calm.chance.random()
            if luck < 0.35:
                self._calm.chance.choice(self._cluster.transactional).die()
            elif luck < 0.5:
                self._cluster.wait(TIMEOUT_MS + 1)

    def transactional_ids_expire(self) -> None:
        """Many unused ids expire at once (KAFKA-13099)."""
        coordinator = self._coordinator()
        if coordinator is None:
            return
        for producer in self._cluster.transactional:
            producer.keeps_id = False
        names, errors = [f"job-{number:060}" for number in range(_EXPIRING_IDS)], list[ErrorCode]()
        try:
            for name in names:
                coordinator.transactions.init_producer_id(name, TIMEOUT_MS, None, lambda error, _: errors.append(error))
        except KafkaError:
            return  # it has just begun to coordinate
        self._calm.until(lambda: len(errors) == len(names), _EXPIRY_ROUNDS_MAX)
        self._cluster.wait(TRANSACTIONAL_ID_EXPIRATION_MS + 1)

        def are_gone() -> bool:
            coordinator.transactions.expire_ids()
            return not coordinator.known_transactional_ids(names)

        if not self._calm.until(are_gone, _EXPIRY_ROUNDS_MAX) and self._coordinator() is coordinator:
            left = coordinator.known_transactional_ids(names)
            raise Violation(f"transactional ids {left} don't expire")

    def topic_is_deleted_in_transaction(self) -> None:
        """A topic is deleted while a transaction has records in it, or its markers are on their way (KAFKA-6052)."""
        topic = self._calm.scratch_topic()
        if topic is None:
            return
        version = self._cluster.options.transaction_version
        doomed, history = [TopicPartition(topic, 0)], TransactionHistory()
        producer = TransactionalProducer(_DOOMED, doomed, self._cluster, history, version=version)
        if not self._drive(producer, lambda: producer.phase is Phase.ENDING):
            return
        if self._calm.chance.random() < 0.5:
            self._calm.delete(topic)
            self._calm.rounds(self._calm.chance.randint(0, 8))
        else:
            producer.act(self._calm.chance)  # asks for the end
            self._calm.delete(topic)
        is_answered = self._drive(producer, lambda: producer.is_done, begins=False)
        producer.die()  # the next one gets an epoch when the transaction is over
        if not is_answered or not self._drive(producer, lambda: producer.phase is Phase.READY, begins=False):
            raise Violation(f"a transaction with records in topic {topic}, which is deleted, doesn't end")

    def _drive(self, producer: TransactionalProducer, is_there: Callable[[], bool], *, begins: bool = True) -> bool:
        """Let a producer that is not one of the story's act, until it is there."""
        for _ in range(_ROUNDS_MAX):
            producer.act(self._calm.chance, begins=begins or producer.phase is Phase.NEW)
            if is_there():
                return True
            self._calm.rounds(1)
        return False

    def _coordinator(self) -> SimulatedBroker | None:
        found = self._cluster.elected_leader(STATE)
        return found if found is not None and found.leads(STATE) else None
