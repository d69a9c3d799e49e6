"""kafka-broker-api-versions: the requests of each broker, and their versions."""

from odradek.apps.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, EVERY_TOOL, Given, OptionTable
from odradek.apps.cli.kafka.tool import connect
from odradek.client.cluster_admin import describe_cluster
from odradek.protocol.api_keys import APIS, ApiKey

TABLE = OptionTable("This tool helps to retrieve broker version information.", BOOTSTRAP, COMMAND_CONFIG, *EVERY_TOOL)
# requests that Kafka 3.9's clients know and brokers in ZooKeeper mode don't have
_OTHERS = {
    55: "DescribeQuorum",
    64: "UnregisterBroker",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    74: "ListClientMetricsResources",
    75: "DescribeTopicPartitions",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
}


def run(given: Given) -> int:
    given.require("bootstrap-server")
    with connect(given) as client:
        cluster = describe_cluster(client)
        for broker in sorted(cluster.brokers, key=lambda broker: broker.broker_id):
            rack = broker.rack or "null"
            versions = client.versions_of(broker.broker_id)
            lines = [_line(key, versions.get(key)) for key in sorted({*versions, *APIS, *_OTHERS})]
            print(f"{broker.host}:{broker.port} (id: {broker.broker_id} rack: {rack}) -> (")
            print(",\n".join(lines))
            print(")")
    return 0


_NEWEST_OF_39: dict[int, int] = {
    ApiKey.PRODUCE: 11,
    ApiKey.END_TXN: 4,
    ApiKey.WRITE_TXN_MARKERS: 1,
    ApiKey.TXN_OFFSET_COMMIT: 4,
}
"""Newest versions that Kafka 3.9's tool could use, where ours are newer."""


def _line(key: int, offered: range | None) -> str:
    if offered is None:
        return f"\t{APIS[key].name if key in APIS else _OTHERS[key]}({key}): UNSUPPORTED"
    low, high = offered[0], offered[-1]
    versions = f"{low}" if low == high else f"{low} to {high}"
    if key not in APIS:
        return f"\tUNKNOWN({key}): {versions}"
    api = APIS[key]
    usable = min(high, _NEWEST_OF_39.get(key, api.max_version))
    note = f"[usable: {usable}]" if usable >= max(low, api.min_version) else "[unusable: node too new]"
    return f"\t{api.name}({key}): {versions} {note}"
