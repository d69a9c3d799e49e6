"""The requests that exist: Kafka 3.9's table in ZooKeeper mode, with the versions of each.

A message module is imported when its API is first used, so a broker pays only for what its clients speak.
"""

from enum import IntEnum
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import cast

from odradek.protocol.fields import parse_versions
from odradek.protocol.schema import Request, Response


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69


class Api:
    """One row of the table; it loads its request and response classes."""

    def __init__(self, key: ApiKey, name: str, versions: str) -> None:
        self.key = key
        self.name = name
        self.versions = parse_versions(versions)

    @property
    def min_version(self) -> int:
        return self.versions[0]

    @property
    def max_version(self) -> int:
        return self.versions[-1]

    @cached_property
    def request(self) -> type[Request]:
        return cast(type[Request], getattr(self._module, f"{self.name}Request"))

    @cached_property
    def response(self) -> type[Response]:
        return cast(type[Response], getattr(self._module, f"{self.name}Response"))

    @property
    def _module(self) -> ModuleType:
        return import_module(f"odradek.protocol.messages.{self.key.name.lower()}")


APIS: dict[int, Api] = {
    key: Api(key, name, versions)
    for key, name, versions in [
        (ApiKey.PRODUCE, "Produce", "0-12"),
        (ApiKey.FETCH, "Fetch", "0-17"),
        (ApiKey.LIST_OFFSETS, "ListOffsets", "0-9"),
        (ApiKey.METADATA, "Metadata", "0-12"),
        (ApiKey.LEADER_AND_ISR, "LeaderAndIsr", "0-7"),
        (ApiKey.STOP_REPLICA, "StopReplica", "0-4"),
        (ApiKey.UPDATE_METADATA, "UpdateMetadata", "0-8"),
        (ApiKey.CONTROLLED_SHUTDOWN, "ControlledShutdown", "0-3"),
        (ApiKey.OFFSET_COMMIT, "OffsetCommit", "0-9"),
        (ApiKey.OFFSET_FETCH, "OffsetFetch", "0-9"),
        (ApiKey.FIND_COORDINATOR, "FindCoordinator", "0-6"),
        (ApiKey.JOIN_GROUP, "JoinGroup", "0-9"),
        (ApiKey.HEARTBEAT, "Heartbeat", "0-4"),
        (ApiKey.LEAVE_GROUP, "LeaveGroup", "0-5"),
        (ApiKey.SYNC_GROUP, "SyncGroup", "0-5"),
        (ApiKey.DESCRIBE_GROUPS, "DescribeGroups", "0-5"),
        (ApiKey.LIST_GROUPS, "ListGroups", "0-5"),
        (ApiKey.SASL_HANDSHAKE, "SaslHandshake", "0-1"),
        (ApiKey.API_VERSIONS, "ApiVersions", "0-4"),
        (ApiKey.CREATE_TOPICS, "CreateTopics", "0-7"),
        (ApiKey.DELETE_TOPICS, "DeleteTopics", "0-6"),
        (ApiKey.DELETE_RECORDS, "DeleteRecords", "0-2"),
        (ApiKey.INIT_PRODUCER_ID, "InitProducerId", "0-5"),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", "0-4"),
        (ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", "0-5"),
        (ApiKey.ADD_OFFSETS_TO_TXN, "AddOffsetsToTxn", "0-4"),
        (ApiKey.END_TXN, "EndTxn", "0-5"),
        (ApiKey.WRITE_TXN_MARKERS, "WriteTxnMarkers", "0-2"),
        (ApiKey.TXN_OFFSET_COMMIT, "TxnOffsetCommit", "0-5"),
        (ApiKey.DESCRIBE_ACLS, "DescribeAcls", "0-3"),
        (ApiKey.CREATE_ACLS, "CreateAcls", "0-3"),
        (ApiKey.DELETE_ACLS, "DeleteAcls", "0-3"),
        (ApiKey.DESCRIBE_CONFIGS, "DescribeConfigs", "0-4"),
        (ApiKey.ALTER_CONFIGS, "AlterConfigs", "0-2"),
        (ApiKey.ALTER_REPLICA_LOG_DIRS, "AlterReplicaLogDirs", "0-2"),
        (ApiKey.DESCRIBE_LOG_DIRS, "DescribeLogDirs", "0-4"),
        (ApiKey.SASL_AUTHENTICATE, "SaslAuthenticate", "0-2"),
        (ApiKey.CREATE_PARTITIONS, "CreatePartitions", "0-3"),
        (ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationToken", "0-3"),
        (ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationToken", "0-2"),
        (ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationToken", "0-2"),
        (ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationToken", "0-3"),
        (ApiKey.DELETE_GROUPS, "DeleteGroups", "0-2"),
        (ApiKey.ELECT_LEADERS, "ElectLeaders", "0-2"),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigs", "0-1"),
        (ApiKey.ALTER_PARTITION_REASSIGNMENTS, "AlterPartitionReassignments", "0-0"),
        (ApiKey.LIST_PARTITION_REASSIGNMENTS, "ListPartitionReassignments", "0-0"),
        (ApiKey.OFFSET_DELETE, "OffsetDelete", "0-0"),
        (ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotas", "0-1"),
        (ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotas", "0-1"),
        (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "DescribeUserScramCredentials", "0-0"),
        (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentials", "0-0"),
        (ApiKey.ALTER_PARTITION, "AlterPartition", "0-3"),
        (ApiKey.UPDATE_FEATURES, "UpdateFeatures", "0-1"),
        (ApiKey.ENVELOPE, "Envelope", "0-0"),
        (ApiKey.DESCRIBE_CLUSTER, "DescribeCluster", "0-1"),
        (ApiKey.DESCRIBE_PRODUCERS, "DescribeProducers", "0-0"),
        (ApiKey.DESCRIBE_TRANSACTIONS, "DescribeTransactions", "0-0"),
        (ApiKey.LIST_TRANSACTIONS, "ListTransactions", "0-1"),
        (ApiKey.ALLOCATE_PRODUCER_IDS, "AllocateProducerIds", "0-0"),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", "0-0"),
        (ApiKey.CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", "0-0"),
    ]
}
