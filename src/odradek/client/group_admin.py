"""Consumer groups, for the tools: list and describe them, read and change their offsets.

Each group is known to one broker, its coordinator, which is looked up for every question, since it may move. Functions
return when the coordinator reports success, and raise its error otherwise.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from odradek.base.errors import ErrorCode, KafkaError
from odradek.base.value_classes import dataclass
from odradek.client.cluster_client import ClusterClient, R
from odradek.client.consumer_protocol import PROTOCOL_TYPE, read_assignment
from odradek.model.topology import TopicPartition
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
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
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
)
from odradek.protocol.schema import Request

_NO_OFFSET = -1


@dataclass(frozen=True, slots=True)
class GroupListing:
    group: str
    state: str
    type: str
    protocol_type: str

    @property
    def is_consumers(self) -> bool:
        """True for a group of consumers; a group that only commits offsets has no protocol."""
        return self.protocol_type in (PROTOCOL_TYPE, "")


@dataclass(frozen=True, slots=True)
class Member:
    id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    state: str
    assignor: str
    coordinator: int
    coordinator_address: tuple[str, int]
    members: tuple[Member, ...]

    @property
    def exists(self) -> bool:
        return self.state != "Dead"

    @property
    def is_idle(self) -> bool:
        """True if the group has no active members, so that its offsets may be changed."""
        return self.state in ("Empty", "Dead")


def list_groups(client: ClusterClient, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[GroupListing]:
    """The groups of all brokers, by name."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    found: dict[str, GroupListing] = {}
    for broker in client.brokers():
        answer = client.retrying(partial(_listed, client, broker, request))
        for group in answer.groups:
            found[group.group_id] = GroupListing(
                group.group_id, group.group_state, group.group_type or "classic", group.protocol_type
            )
    return [found[name] for name in sorted(found)]


def describe_group(client: ClusterClient, name: str) -> Group:
    """The group as its coordinator sees it; one that doesn't exist is in state Dead."""
    return client.retrying(partial(_describe, client, name))


def existing_group(client: ClusterClient, name: str) -> Group:
    group = describe_group(client, name)
    if not group.exists:
        raise unknown_group(name)
    return group


def committed_offsets(
    client: ClusterClient, group: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = False
) -> dict[TopicPartition, int]:
    """Return the committed offsets, of these partitions or of all; partitions without a commit are left out. `stable`:
    wait while an open transaction may change them."""
    wanted = None if partitions is None else _by_topic(partitions)
    found = client.retrying(partial(_committed, client, group, wanted, stable=stable))
    return {tp: each.committed_offset for tp, each in found.items()}


def committed_metadata(
    client: ClusterClient, group: str, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, str]:
    """Return the words of the committer with each offset, of these partitions or of all. Waits while a transaction may
    still change them."""
    return {tp: metadata for tp, (_, metadata) in committed_positions(client, group, partitions).items()}


def committed_positions(
    client: ClusterClient, group: str, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, tuple[int, str]]:
    """Return the committed offsets with the words of the committer, as `committed_metadata` does."""
    wanted = None if partitions is None else _by_topic(partitions)
    found = client.retrying(partial(_committed, client, group, wanted, stable=True))
    return {tp: (each.committed_offset, each.metadata or "") for tp, each in found.items()}


def commit_offsets(
    client: ClusterClient,
    group: str,
    offsets: Mapping[TopicPartition, int],
    *,
    member_id: str = "",
    generation: int = -1,
) -> None:
    """Commit these offsets for the group; without a member id only a group without active members allows it."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offsets[TopicPartition(topic, number)],
                    committed_metadata="",
                )
                for number in numbers
            ],
        )
        for topic, numbers in _by_topic(offsets).items()
    ]
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=generation, member_id=member_id, topics=topics
    )
    client.retrying(partial(_commit, client, group, request))


def delete_group(client: ClusterClient, name: str) -> None:
    client.retrying(partial(_delete, client, name))


def delete_offsets(
    client: ClusterClient, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Delete the group's offsets of these partitions; return the result of each."""
    topics = [
        OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers]
        )
        for topic, numbers in _by_topic(partitions).items()
    ]
    request = OffsetDeleteRequest(group_id=group, topics=topics)

    def attempt() -> OffsetDeleteResponse:
        answer = ask_coordinator(client, group, request, OffsetDeleteResponse)
        raise_for(group, answer.error_code)
        return answer

    return {
        TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in client.retrying(attempt).topics
        for partition in topic.partitions
    }


def find_coordinator(client: ClusterClient, group: str) -> int:
    answer = client.ask_any(FindCoordinatorRequest(coordinator_keys=[group]), FindCoordinatorResponse)
    (found,) = answer.coordinators
    raise_for(group, found.error_code)
    return found.node_id


def ask_coordinator(client: ClusterClient, group: str, request: Request, answer: type[R]) -> R:
    return client.ask_broker(find_coordinator(client, group), request, answer)


def raise_for(group: str, code: int) -> None:
    error = ErrorCode(code)
    match error:
        case ErrorCode.NONE:
            return
        case ErrorCode.GROUP_ID_NOT_FOUND:
            raise unknown_group(group)
        case ErrorCode.NON_EMPTY_GROUP | ErrorCode.UNKNOWN_MEMBER_ID:
            raise KafkaError(
                error, f"group '{group}' has members; stop them first (odradek groups members {group} shows them)"
            )
        case _:
            raise KafkaError(error, f"group '{group}': {error.name}")


def unknown_group(name: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"group '{name}' does not exist", advice="see which do with: odradek groups list"
    )


def _listed(client: ClusterClient, broker: int, request: ListGroupsRequest) -> ListGroupsResponse:
    answer = client.ask_broker(broker, request, ListGroupsResponse)
    if answer.error_code:
        code = ErrorCode(answer.error_code)
        raise KafkaError(code, f"broker {broker} can't list its groups: {code.name}")
    return answer


def _describe(client: ClusterClient, name: str) -> Group:
    coordinator = find_coordinator(client, name)
    answer = client.ask_broker(coordinator, DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse)
    (group,) = answer.groups
    raise_for(name, group.error_code)
    return Group(
        name=name,
        state=group.group_state,
        assignor=group.protocol_data,
        coordinator=coordinator,
        coordinator_address=client.address(coordinator),
        members=tuple(_member(member, group) for member in group.members),
    )


def _member(member: DescribedGroupMember, group: DescribedGroup) -> Member:
    return Member(
        id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        partitions=tuple(
            read_assignment(bytes(member.member_assignment)) if group.protocol_type == PROTOCOL_TYPE else ()
        ),
    )


def _committed(
    client: ClusterClient, group: str, wanted: dict[str, list[int]] | None, *, stable: bool
) -> dict[TopicPartition, OffsetFetchResponsePartitions]:
    named = None
    if wanted is not None:
        named = [OffsetFetchRequestTopics(name=topic, partition_indexes=numbers) for topic, numbers in wanted.items()]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=named)], require_stable=stable)
    (group_offsets,) = ask_coordinator(client, group, request, OffsetFetchResponse).groups
    raise_for(group, group_offsets.error_code)
    found: dict[TopicPartition, OffsetFetchResponsePartitions] = {}
    for topic in group_offsets.topics:
        for partition in topic.partitions:
            raise_for(group, partition.error_code)
            if partition.committed_offset != _NO_OFFSET:
                found[TopicPartition(topic.name, partition.partition_index)] = partition
    return found


def _commit(client: ClusterClient, group: str, request: OffsetCommitRequest) -> None:
    for topic in ask_coordinator(client, group, request, OffsetCommitResponse).topics:
        for partition in topic.partitions:
            raise_for(group, partition.error_code)


def _delete(client: ClusterClient, name: str) -> None:
    for result in ask_coordinator(client, name, DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse).results:
        raise_for(name, result.error_code)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for tp in partitions:
        numbers[tp.topic].append(tp.partition)
    return dict(numbers)
