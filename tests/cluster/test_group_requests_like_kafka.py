"""Groups request by request: Odradek answers as Apache Kafka does, at the edges of what a request can say."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.protocol.schema import Request

from .conftest import unused_name
from .kafka_pair import KafkaPair
from .test_group_versions import until_no_error

pytestmark = pytest.mark.timeout(180)

SESSION_MS = 30_000
MEMBER_ID = re.compile(r"[\w.]*-?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
THROTTLED = re.compile(r"throttle_time_ms=\d+")


class Asker:
    """A client that says what it likes. Its answers are texts, in which ids that the broker made are all the same."""

    def __init__(self, client: BrokerClient, topic: str, group: str) -> None:
        self.client, self.topic, self.group = client, topic, group
        self.told: dict[str, Any] = {}

    def await_coordinator(self) -> None:
        until_no_error(lambda: self.client.send(FindCoordinatorRequest(key=""), 1).error_code)
        until_no_error(lambda: self.client.send(DescribeGroupsRequest(groups=["nobody"])).groups[0].error_code)

    def ask(self, what: str, request: Request, version: int | None = None) -> Any:
        answer = self.client.send(request, version)
        _put_in_order(answer)
        assert what not in self.told
        self.told[what] = THROTTLED.sub("", MEMBER_ID.sub("MEMBER", str(answer)))
        return answer

    # ---- offsets

    def commit(self, what: str, *positions: tuple[int, int], version: int = 8, **said: Any) -> None:
        topic = said.pop("topic", self.topic)
        metadata = said.pop("metadata", "")
        partitions = [
            OffsetCommitRequestPartition(partition_index=p, committed_offset=o, committed_metadata=metadata)
            for p, o in positions
        ]
        topics = [OffsetCommitRequestTopic(name=topic, partitions=partitions)]
        self.ask(what, OffsetCommitRequest(**{"group_id": self.group, "topics": topics, **said}), version)

    def fetch(self, what: str, *partitions: int, version: int = 7, everything: bool = False, **said: Any) -> None:
        topics = [OffsetFetchRequestTopic(name=said.pop("topic", self.topic), partition_indexes=list(partitions))]
        request = OffsetFetchRequest(**{"group_id": self.group, "topics": None if everything else topics, **said})
        self.ask(what, request, version)

    def fetch_groups(self, what: str, groups: Sequence[tuple[str, Sequence[int] | None]]) -> None:
        def topics(partitions: Sequence[int] | None) -> list[OffsetFetchRequestTopics] | None:
            if partitions is None:
                return None
            return [OffsetFetchRequestTopics(name=self.topic, partition_indexes=list(partitions))] if partitions else []

        asked = [OffsetFetchRequestGroup(group_id=name, topics=topics(partitions)) for name, partitions in groups]
        self.ask(what, OffsetFetchRequest(groups=asked, require_stable=True), 8)

    def forget(self, what: str, *partitions: int, topic: str | None = None, group: str | None = None) -> None:
        asked = [OffsetDeleteRequestPartition(partition_index=each) for each in partitions]
        topics = [OffsetDeleteRequestTopic(name=topic or self.topic, partitions=asked)]
        self.ask(what, OffsetDeleteRequest(group_id=self.group if group is None else group, topics=topics))

    # ---- members

    def join(self, what: str, version: int = 9, *protocols: str, **said: Any) -> JoinGroupResponse:
        request = JoinGroupRequest(
            **{
                "group_id": self.group,
                "session_timeout_ms": SESSION_MS,
                "rebalance_timeout_ms": SESSION_MS,
                "protocol_type": "consumer",
                "protocols": [JoinGroupRequestProtocol(name=name, metadata=b"") for name in protocols or ("range",)],
                **said,
            }
        )
        answer: JoinGroupResponse = self.ask(what, request, version)
        return answer

    def sync(self, what: str, member_id: str, generation: int, version: int = 5, **said: Any) -> None:
        request = SyncGroupRequest(
            **{
                "group_id": self.group,
                "generation_id": generation,
                "member_id": member_id,
                "protocol_type": "consumer",
                "protocol_name": "range",
                "assignments": [SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")],
                **said,
            }
        )
        self.ask(what, request, version)

    def beat(self, what: str, member_id: str, generation: int, instance_id: str | None = None) -> None:
        request = HeartbeatRequest(
            group_id=self.group, member_id=member_id, generation_id=generation, group_instance_id=instance_id
        )
        self.ask(what, request)

    def leave(self, what: str, *members: tuple[str, str | None], group: str | None = None) -> None:
        named = [MemberIdentity(member_id=id, group_instance_id=instance) for id, instance in members]
        self.ask(what, LeaveGroupRequest(group_id=self.group if group is None else group, members=named))

    def describe(self, what: str, *groups: str) -> None:
        asked = list(groups or (self.group,))
        self.ask(what, DescribeGroupsRequest(groups=asked, include_authorized_operations=True))

    def delete(self, what: str, *groups: str) -> None:
        self.ask(what, DeleteGroupsRequest(groups_names=list(groups or (self.group,))))

    def list_(self, what: str, **filters: list[str]) -> None:
        """Of this group alone."""
        answer = self.client.send(ListGroupsRequest(**filters))
        listed = [(each.protocol_type, each.group_state, each.group_type) for each in answer.groups]
        names = [each.group_id for each in answer.groups]
        self.told[what] = [each for each, name in zip(listed, names, strict=True) if name == self.group]


def _put_in_order(answer: Any) -> None:
    """Kafka answers partitions and deleted groups in the order of its hash maps."""
    if isinstance(answer, DeleteGroupsResponse):
        answer.results.sort(key=lambda result: result.group_id)
    elif isinstance(answer, OffsetCommitResponse | OffsetDeleteResponse | OffsetFetchResponse):
        groups: list[Any] = [answer, *answer.groups] if isinstance(answer, OffsetFetchResponse) else [answer]
        for topic in (topic for group in groups for topic in group.topics):
            topic.partitions.sort(key=lambda partition: partition.partition_index)


def positions(me: Asker) -> None:
    for version in (1, 5, 7):
        me.fetch(f"fetch of nobody v{version}", 0, 9, version=version)
    me.fetch("fetch all of nobody", everything=True)
    me.fetch_groups("fetch of nobodies", [(me.group, None), (me.group, []), ("", [0]), (me.group, [0, 0, 7])])
    me.commit("offsets", (0, 5), (1, 2**63 - 1), (9, 1), metadata=None)
    me.commit("negative", (1, -5))
    me.commit("unknown topic", (0, 1), topic="not.there")
    me.commit("no topic name", (0, 1), topic="")
    me.commit("in a generation", (0, 1), generation_id_or_member_epoch=3)
    me.commit("as a member", (0, 1), member_id="somebody")
    me.commit("as a static one", (0, 1), group_instance_id="somebody")
    for version in (2, 4):
        for retention_ms in (-1, 3_600_000):
            me.commit(f"kept {retention_ms} v{version}", (0, 8), version=version, retention_time_ms=retention_ms)
    me.commit("for no group", (0, 1), group_id="")
    for version in (1, 5, 7):
        me.fetch(f"fetch v{version}", 0, 1, 9, 0, version=version)
    me.fetch("fetch all", everything=True)
    me.fetch("fetch nothing")
    me.fetch("fetch unknown topic", 0, topic="not.there")
    me.fetch_groups("fetch many", [(me.group, None), (me.group, []), ("", None), ("nobody", [0]), (me.group, [1])])
    me.describe("described", me.group, me.group, "nobody", "")
    me.list_("listed")
    for filters in (["EMPTY"], ["Stable", "nonsense"], ["dead"]):
        me.list_(f"listed {filters}", states_filter=filters)
    for filters in (["Classic"], ["consumer"], ["nonsense"]):
        me.list_(f"listed types {filters}", types_filter=filters)
    me.forget("forget of nobody", 0, group="nobody")
    me.forget("forget of no name", 0, group="")
    me.forget("forget", 1, 9)
    me.forget("forget unknown topic", 0, topic="not.there")
    me.fetch("what is left", everything=True)
    me.delete("delete", me.group, me.group, "nobody", "")
    me.delete("deleted already")
    me.forget("forget of the deleted", 0)
    me.list_("listed after all")


def members(me: Asker) -> None:
    for session_ms in (0, -1, 5_999, 1_800_001, 2**31 - 1):
        me.join(f"session {session_ms}", session_timeout_ms=session_ms)
    me.join("nobody", member_id="nobody")
    me.join("nobody, static", member_id="nobody", group_instance_id="one")
    me.join("no protocols", protocols=[])
    me.join("no protocol type", protocol_type="")
    me.join("no group", group_id="")
    me.leave("leave of no group", ("a", None), (" ", "b"), group="")
    me.leave("leave of nobody", ("a", None), ("", "b"), ("", None))
    me.leave("leave of none")
    me.beat("beat of nobody", "a", 1)
    me.sync("sync of nobody", "a", 1)
    pending = me.join("pending").member_id
    me.list_("listed while pending")
    me.describe("described while pending")
    me.beat("beat while pending", pending, -1)
    me.sync("sync while pending", pending, 0)
    me.commit("commit while pending", (0, 3), member_id=pending)
    me.leave("leave while pending", (pending, None), (pending, None))
    pending = me.join("pending again").member_id
    me.delete("delete while pending")
    me.join("join after deletion", member_id=pending)


def static_members(me: Asker) -> None:
    first = me.join("static", group_instance_id="one")
    me.sync("no protocol", first.member_id, first.generation_id, protocol_name=None, group_instance_id="one")
    me.sync("other type", first.member_id, first.generation_id, protocol_type="connect", group_instance_id="one")
    me.sync("other generation", first.member_id, first.generation_id + 1, group_instance_id="one")
    me.commit(
        "too early",
        (0, 1),
        member_id=first.member_id,
        group_instance_id="one",
        generation_id_or_member_epoch=first.generation_id,
    )
    me.sync("sync", first.member_id, first.generation_id, group_instance_id="one")
    me.sync("sync again", first.member_id, first.generation_id, version=3, group_instance_id="one")
    me.describe("described")
    second = me.join("static again", group_instance_id="one")
    third = me.join("static again, older", 8, group_instance_id="one")
    me.beat("fenced", second.member_id, third.generation_id, "one")
    me.beat("without its name", second.member_id, third.generation_id)
    me.beat("another name", third.member_id, third.generation_id, "two")
    me.beat("alive", third.member_id, third.generation_id, "one")
    me.beat("alive without its name", third.member_id, third.generation_id)
    me.commit("commit of nobody", (0, 1))
    me.commit("commit without a generation", (0, 1), member_id=third.member_id)
    me.commit("commit by name alone", (0, 1), group_instance_id="one")
    me.join("other protocol", 9, "sticky", group_instance_id="one")
    me.join("as another", member_id=third.member_id, group_instance_id="two")
    me.delete("delete")
    me.forget("forget", 0)
    me.list_("listed", states_filter=["stable"])
    me.leave("leave", (second.member_id, "one"), ("", "two"), ("", "one"), ("", "one"), (third.member_id, None))
    me.describe("left")
    me.join("joined by the old id", member_id=third.member_id, group_instance_id="one")
    me.ask("coordinators", FindCoordinatorRequest(coordinator_keys=[]), 4)
    me.delete("deleted")
    me.describe("gone")


@pytest.mark.parametrize("story", [positions, members, static_members])
def test_groups(pair: KafkaPair, story: Any) -> None:
    group = unused_name()
    askers = [Asker(each, pair.topic, group) for each in (pair.ours, pair.theirs)]
    for me in askers:
        me.await_coordinator()
        story(me)
    ours, theirs = (me.told for me in askers)
    assert ours.keys() == theirs.keys()
    assert [(step, answer, theirs[step]) for step, answer in ours.items() if theirs[step] != answer] == []
