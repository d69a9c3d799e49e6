"""kafka-broker-api-versions: which requests each broker has, in which versions."""

from odradek.cli.kafka.options import BOOTSTRAP, COMMAND_CONFIG, EVERY_TOOL, Given, OptionTable
from odradek.cli.kafka.tool import connect
from odradek.protocol.api_keys import APIS
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

TABLE = OptionTable("This tool helps to retrieve broker version information.", BOOTSTRAP, COMMAND_CONFIG, *EVERY_TOOL)


def run(given: Given) -> int:
    given.require("bootstrap-server")
    with connect(given) as client:
        cluster = client.ask_any(DescribeClusterRequest(), DescribeClusterResponse)
        for broker in sorted(cluster.brokers, key=lambda broker: broker.broker_id):
            rack = broker.rack or "null"
            lines = [_line(key, offered) for key, offered in sorted(client.versions_of(broker.broker_id).items())]
            print(f"{broker.host}:{broker.port} (id: {broker.broker_id} rack: {rack}) -> (")
            print(",\n".join(lines))
            print(")")
    return 0


def _line(key: int, offered: range) -> str:
    low, high = offered[0], offered[-1]
    versions = f"{low}" if low == high else f"{low} to {high}"
    if key not in APIS:
        return f"\tUNKNOWN({key}): {versions}"
    api = APIS[key]
    usable = min(high, api.max_version)
    note = f"[usable: {usable}]" if usable >= max(low, api.min_version) else "[unusable: node too new]"
    return f"\t{api.name}({key}): {versions} {note}"
