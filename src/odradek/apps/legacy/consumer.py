"""Design one: every member watches the whole group and decides for itself, as Kafka 0.8's consumer did.

Every member watches the members, the brokers and its topics. After a change it stops reading, gives up all it owns,
reads the group, computes the same assignment as the others (if it sees the same group) and claims its part. It can't
claim a partition that another still owns: then it gives up all of it again, waits, and tries anew, four times; after
that it owns nothing until something changes.
"""

import time
from collections.abc import Collection

from odradek.apps.legacy.core.range_assignment import assign, member_of
from odradek.apps.legacy.core.znodes import ConsumerId, ConsumerIds
from odradek.apps.legacy.member import ZOOKEEPER_ERRORS, Member
from odradek.apps.legacy.observer import What
from odradek.base.logs import get_logger
from odradek.broker.zk.znodes import BrokerIds, Topic

log = get_logger(__name__)


class ZooKeeperConsumer(Member):
    def _join(self) -> None:
        self._watch([*self._watched_parents(), *(Topic.path(topic) for topic in self.registration.subscription)])
        self._rebalance()

    def _react(self, changed: Collection[str]) -> None:
        self._watch(changed)
        self._rebalance()

    def _watched_parents(self) -> list[str]:
        return [ConsumerIds.path(self.group), BrokerIds.path]

    def _watch(self, paths: Collection[str]) -> None:
        parents = [path for path in paths if path in self._watched_parents()]
        topics = [path for path in paths if path not in parents]
        if parents:
            self.tree.watch_children(parents)
        if topics:
            self.tree.watch_nodes(topics)

    def _rebalance(self) -> None:
        """Rebalance again after every change meanwhile, which may have come too late to be seen."""
        due = True
        while due and not self._stopping.is_set():
            due = self._rebalance_once()

    def _rebalance_once(self) -> bool:
        """Rebalance once; return whether something changed between the attempts."""
        changed = False
        for _ in range(self.settings.rebalance_max_retries):
            if self._stopping.is_set() or self._attempt_succeeds():
                return changed
            self.observer.happened(self.id, What.RETRIED)
            changed |= self._back_off()
        self.observer.happened(self.id, What.GAVE_UP)
        log.warning("member gave up", member=self.id, attempts=self.settings.rebalance_max_retries)
        return changed

    def _back_off(self) -> bool:
        """Wait before the next attempt; watches stay set meanwhile. Return whether something changed."""
        changed = False
        deadline = time.monotonic() + self.settings.rebalance_backoff_ms / 1000
        while paths := self._await_changes(deadline):
            changed = True
            self._watch(paths)
        return changed

    def _attempt_succeeds(self) -> bool:
        try:
            return self._attempt()
        except ZOOKEEPER_ERRORS as error:
            # most often a node was deleted during the read: the next attempt sees the group without it
            log.info("member could not rebalance", member=self.id, error=str(error))
            return False

    def _attempt(self) -> bool:
        if not self.tree.brokers():
            return True
        if self.tree.read([ConsumerId.path(self.group, self.id)]) == [None]:
            return False
        owned = self.owned
        stopped = self._stop_reading()
        if self.settings.auto_commit_enable:
            self.tree.commit(stopped)
        self.tree.release(owned)
        membership = self.tree.members()
        assigned = assign(membership.members, self.tree.partitions(self.registration.subscription))
        mine = {tp: stream for tp, stream in assigned.items() if member_of(stream) == self.id}
        self.observer.happened(self.id, What.DECIDED, mine, membership.version)
        offsets = self.tree.offsets(list(mine))
        claimed = self.tree.claim(mine)
        if refused := mine.keys() - claimed:
            self.observer.happened(self.id, What.REFUSED, refused)
            self.tree.release(claimed)
            return False
        self._begin_reading(claimed, offsets)
        return True
