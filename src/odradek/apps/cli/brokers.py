"""`odradek brokers`: the live brokers, the controller, and the leaders and replicas of each broker."""

from collections import Counter

from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import DEFAULT_BOOTSTRAP, BootstrapOption, Format, FormatOption, print_rows
from odradek.apps.cli.watch import watchable
from odradek.client.cluster_admin import describe_cluster
from odradek.client.cluster_client import ClusterClient

_COLUMNS = ("broker", "address", "rack", "controller", "leaders", "preferred", "replicas", "out_of_sync")


@command(examples=["odradek brokers", "odradek brokers --format json"])
@watchable
def brokers(bootstrap_server: BootstrapOption = DEFAULT_BOOTSTRAP, output: FormatOption = Format.TABLE) -> None:
    """Show the live brokers."""
    with ClusterClient(bootstrap_server) as client:
        cluster = describe_cluster(client)
        partitions = [partition for topic in client.topics().values() for partition in topic.partitions]
    leads = Counter(partition.leader for partition in partitions)
    preferred = Counter(partition.replicas[0] for partition in partitions)
    replicas = Counter(broker for partition in partitions for broker in partition.replicas)
    in_sync = Counter(broker for partition in partitions for broker in partition.isr)
    rows = [
        {
            "broker": broker.broker_id,
            "address": f"{broker.host}:{broker.port}",
            "rack": broker.rack,
            "controller": broker.broker_id == cluster.controller_id,
            "leaders": leads[broker.broker_id],
            "preferred": preferred[broker.broker_id],
            "replicas": replicas[broker.broker_id],
            "out_of_sync": replicas[broker.broker_id] - in_sync[broker.broker_id],
        }
        for broker in sorted(cluster.brokers, key=lambda broker: broker.broker_id)
    ]
    print_rows(rows, _COLUMNS, output, empty="no broker is known to the cluster yet")
