"""Requests of every kind that a client may send, harmless to the cluster even where they are allowed."""

from typing import Any
from uuid import UUID

from odradek.protocol.messages import alter_client_quotas as quotas
from odradek.protocol.messages import alter_configs as replace_configs
from odradek.protocol.messages import alter_replica_log_dirs as move
from odradek.protocol.messages import alter_user_scram_credentials as scram
from odradek.protocol.messages import create_partitions as grow
from odradek.protocol.messages import create_topics as create
from odradek.protocol.messages import delete_records as shorten
from odradek.protocol.messages import delete_topics as delete
from odradek.protocol.messages import describe_configs as configs
from odradek.protocol.messages import describe_producers as producers
from odradek.protocol.messages import elect_leaders as elect
from odradek.protocol.messages import fetch, metadata
from odradek.protocol.messages import incremental_alter_configs as change_configs
from odradek.protocol.messages import list_offsets as offsets
from odradek.protocol.messages import offset_commit as commit
from odradek.protocol.messages import offset_delete as forget
from odradek.protocol.messages import offset_fetch as committed
from odradek.protocol.messages import offset_for_leader_epoch as epochs
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from odradek.protocol.messages.alter_partition import AlterPartitionRequest
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from odradek.protocol.messages.stop_replica import StopReplicaRequest
from odradek.protocol.messages.sync_group import SyncGroupRequest
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from .own_broker import batch_of, fetch_request, produce_request

SEEN, GHOST, GROUP, TXN = "seen", "ghost", "g", "t"
NO_ID = UUID(int=0)
BETWEEN_BROKERS = (
    "leader and isr",
    "stop replica",
    "update metadata",
    "controlled shutdown",
    "alter partition",
    "producer ids",
)
STALE = {"controller_id": 0, "controller_epoch": -5, "broker_epoch": -5}


def _asked(name: str | None, topic_id: UUID = NO_ID) -> metadata.MetadataRequestTopic:
    return metadata.MetadataRequestTopic(name=name, topic_id=topic_id)


def requests_of(topic_id: UUID) -> list[tuple[str, Any, int | None]]:
    """Label, request and version (None: the newest). `topic_id`: of the topic that exists."""
    names = (SEEN, GHOST)
    return [
        *_records(topic_id, names),
        *_groups(names),
        *_topics(topic_id, names),
        *_cluster(),
        *_between_brokers(),
    ]


def _records(topic_id: UUID, names: tuple[str, ...]) -> list[tuple[str, Any, int | None]]:
    by_id = fetch.FetchTopic(topic_id=topic_id, partitions=[fetch.FetchPartition(partition=0)])
    return [
        *((f"produce {name}", produce_request(name, batch_of(b"v")), None) for name in names),
        *((f"fetch {name}", fetch_request(name, 0), 12) for name in names),
        ("fetch by id", fetch.FetchRequest(topics=[by_id], max_bytes=1000), None),
        ("fetch as a follower", fetch_request(SEEN, 0, replica_id=7), 12),
        *(
            (
                f"offsets of {name}",
                offsets.ListOffsetsRequest(
                    replica_id=-1,
                    topics=[
                        offsets.ListOffsetsTopic(
                            name=name, partitions=[offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
                        )
                    ],
                ),
                None,
            )
            for name in names
        ),
        (
            "epochs",
            epochs.OffsetForLeaderEpochRequest(
                replica_id=-1,
                topics=[
                    epochs.OffsetForLeaderTopic(
                        topic=SEEN, partitions=[epochs.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
                    )
                ],
            ),
            None,
        ),
        ("idempotent producer", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), None),
        (
            "producers",
            producers.DescribeProducersRequest(
                topics=[producers.TopicRequest(name=name, partition_indexes=[0]) for name in names]
            ),
            None,
        ),
    ]


def _groups(names: tuple[str, ...]) -> list[tuple[str, Any, int | None]]:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    commits = [
        commit.OffsetCommitRequestTopic(
            name=name, partitions=[commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
        )
        for name in names
    ]
    asked = [committed.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names]
    asked_alone = [committed.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in names]
    seen = [topic for topic in asked_alone if topic.name == SEEN]
    return [
        ("coordinator of a group", FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP, "other"]), None),
        ("coordinator of a group, old", FindCoordinatorRequest(key=GROUP, key_type=0), 3),
        (
            "join",
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[protocol],
            ),
            None,
        ),
        (
            "sync",
            SyncGroupRequest(
                group_id=GROUP, member_id="m", generation_id=1, protocol_type="consumer", protocol_name="range"
            ),
            None,
        ),
        ("heartbeat", HeartbeatRequest(group_id=GROUP, member_id="m", generation_id=1), None),
        ("leave", LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="m")]), None),
        (
            "commit",
            commit.OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, topics=commits),
            None,
        ),
        (
            "committed",
            committed.OffsetFetchRequest(
                groups=[
                    committed.OffsetFetchRequestGroup(group_id=GROUP, topics=asked),
                    committed.OffsetFetchRequestGroup(group_id="other", topics=asked),
                ]
            ),
            None,
        ),
        (
            "all committed",
            committed.OffsetFetchRequest(groups=[committed.OffsetFetchRequestGroup(group_id=GROUP, topics=None)]),
            None,
        ),
        ("committed, old", committed.OffsetFetchRequest(group_id=GROUP, topics=seen), 5),
        ("commit in ZooKeeper", commit.OffsetCommitRequest(group_id=GROUP, topics=commits), 0),
        ("committed in ZooKeeper", committed.OffsetFetchRequest(group_id=GROUP, topics=asked_alone), 0),
        ("groups", DescribeGroupsRequest(groups=[GROUP, "other"], include_authorized_operations=True), None),
        ("list groups", ListGroupsRequest(), None),
        ("delete groups", DeleteGroupsRequest(groups_names=["no-such-group"]), None),
        (
            "forget offsets",
            forget.OffsetDeleteRequest(
                group_id="no-such-group",
                topics=[
                    forget.OffsetDeleteRequestTopic(
                        name=SEEN, partitions=[forget.OffsetDeleteRequestPartition(partition_index=0)]
                    )
                ],
            ),
            None,
        ),
    ]


def _topics(topic_id: UUID, names: tuple[str, ...]) -> list[tuple[str, Any, int | None]]:
    set_topic = change_configs.AlterConfigsResource(
        resource_type=2,
        resource_name=SEEN,
        configs=[change_configs.AlterableConfig(name="retention.ms", config_operation=0, value="1000000")],
    )
    return [
        *(
            (
                f"metadata v{version}",
                metadata.MetadataRequest(
                    topics=[_asked(name) for name in names],
                    allow_auto_topic_creation=False,
                    include_topic_authorized_operations=version >= 8,
                    include_cluster_authorized_operations=8 <= version <= 10,
                ),
                version,
            )
            for version in (4, 9, 12)
        ),
        ("metadata by id", metadata.MetadataRequest(topics=[_asked(None, topic_id)]), None),
        ("all metadata", metadata.MetadataRequest(topics=None), None),
        (
            "create topics",
            create.CreateTopicsRequest(
                topics=[create.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names],
                timeout_ms=10_000,
                validate_only=True,
            ),
            None,
        ),
        (
            "more partitions",
            grow.CreatePartitionsRequest(
                topics=[grow.CreatePartitionsTopic(name=name, count=2, assignments=None) for name in names],
                timeout_ms=10_000,
                validate_only=True,
            ),
            None,
        ),
        (
            "delete topics",
            delete.DeleteTopicsRequest(topics=[delete.DeleteTopicState(name=GHOST)], timeout_ms=10_000),
            None,
        ),
        (
            "delete records",
            shorten.DeleteRecordsRequest(
                topics=[
                    shorten.DeleteRecordsTopic(
                        name=SEEN, partitions=[shorten.DeleteRecordsPartition(partition_index=0, offset=0)]
                    )
                ],
                timeout_ms=10_000,
            ),
            None,
        ),
        (
            "configs",
            configs.DescribeConfigsRequest(
                resources=[
                    configs.DescribeConfigsResource(
                        resource_type=kind, resource_name=name, configuration_keys=["retention.ms", "num.io.threads"]
                    )
                    for kind, name in ((2, SEEN), (2, GHOST), (4, "0"))
                ]
            ),
            None,
        ),
        (
            "change configs",
            change_configs.IncrementalAlterConfigsRequest(resources=[set_topic], validate_only=True),
            None,
        ),
        (
            "replace configs",
            replace_configs.AlterConfigsRequest(
                resources=[
                    replace_configs.AlterConfigsResource(resource_type=2, resource_name=GHOST),
                    replace_configs.AlterConfigsResource(resource_type=4, resource_name="0"),
                ],
                validate_only=True,
            ),
            None,
        ),
    ]


def _cluster() -> list[tuple[str, Any, int | None]]:
    unknown_user = scram.ScramCredentialDeletion(name="nobody", mechanism=1)
    any_acl = {"resource_type_filter": 3, "resource_name_filter": "no-such", "principal_filter": None}
    ghost = quotas.EntityData(entity_type="user", entity_name="nobody")
    return [
        ("cluster", DescribeClusterRequest(include_cluster_authorized_operations=True), None),
        ("directories", DescribeLogDirsRequest(topics=[]), None),
        (
            "move replicas",
            move.AlterReplicaLogDirsRequest(
                dirs=[
                    move.AlterReplicaLogDir(
                        path="/nowhere", topics=[move.AlterReplicaLogDirTopic(name=SEEN, partitions=[0])]
                    )
                ]
            ),
            None,
        ),
        (
            "reassign",
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(name=GHOST, partitions=[ReassignablePartition(partition_index=0, replicas=None)])
                ],
                timeout_ms=10_000,
            ),
            None,
        ),
        ("reassignments", ListPartitionReassignmentsRequest(topics=None, timeout_ms=10_000), None),
        (
            "elect",
            elect.ElectLeadersRequest(
                election_type=0,
                topic_partitions=[elect.TopicPartitions(topic=SEEN, partitions=[0])],
                timeout_ms=10_000,
            ),
            None,
        ),
        (
            "features",
            UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="f", max_version_level=1)]),
            None,
        ),
        ("quotas", DescribeClientQuotasRequest(components=[], strict=False), None),
        (
            "change quotas",
            quotas.AlterClientQuotasRequest(
                entries=[quotas.EntryData(entity=[ghost], ops=[quotas.OpData(key="producer_byte_rate", value=1.0)])],
                validate_only=True,
            ),
            None,
        ),
        ("credentials", DescribeUserScramCredentialsRequest(users=[UserName(name="nobody")]), None),
        ("change credentials", scram.AlterUserScramCredentialsRequest(deletions=[unknown_user]), None),
        ("acls", DescribeAclsRequest(**any_acl, host_filter=None, operation=1, permission_type=1), None),  # type: ignore[arg-type]
        (
            "create acls",
            CreateAclsRequest(
                creations=[
                    AclCreation(
                        resource_type=4, resource_name="x", principal="User:a", host="*", operation=3, permission_type=3
                    )
                ]
            ),
            None,
        ),
        (
            "delete acls",
            DeleteAclsRequest(
                filters=[DeleteAclsFilter(**any_acl, host_filter=None, operation=1, permission_type=1)]  # type: ignore[arg-type]
            ),
            None,
        ),
        (
            "write markers",
            WriteTxnMarkersRequest(
                markers=[
                    WritableTxnMarker(
                        producer_id=4_000,
                        producer_epoch=0,
                        transaction_result=False,
                        coordinator_epoch=0,
                        topics=[WritableTxnMarkerTopic(name=GHOST, partition_indexes=[0])],
                    )
                ]
            ),
            None,
        ),
    ]


def _between_brokers() -> list[tuple[str, Any, int | None]]:
    """With epochs so old that an allowed one is refused as stale."""
    return [
        ("leader and isr", LeaderAndIsrRequest(**STALE), None),
        ("stop replica", StopReplicaRequest(**STALE), None),
        ("update metadata", UpdateMetadataRequest(**STALE), None),
        ("controlled shutdown", ControlledShutdownRequest(broker_id=9, broker_epoch=-5), None),
        ("alter partition", AlterPartitionRequest(broker_id=9, broker_epoch=-5), None),
        ("producer ids", AllocateProducerIdsRequest(broker_id=9, broker_epoch=-5), None),
    ]
