"""`odradek lab rebalance`: a ZooKeeper ensemble, a cluster, and the designs in turn."""

import itertools
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.lab.cluster import ChaosCluster
from odradek.apps.lab.lagging_ensemble import LaggingEnsemble
from odradek.apps.lab.options import LAG_MS_MAX, Progress, check_page, choices, end_cleanly_when_killed, numbers
from odradek.apps.lab.rebalance.experiment import MEMBERS_MIN, Experiment, Outcome
from odradek.apps.lab.rebalance.group_members import DESIGNS, Setting
from odradek.apps.lab.rebalance.report import html_report, text_report
from odradek.base import logs
from odradek.client.cluster_client import ClusterClient
from odradek.client.topic_admin import create_topic

# Kafka's own defaults where it has them: the least session timeout, and how long a new group waits for more members.
SESSION_MS = 6000
_SETTINGS = {"group.initial.rebalance.delay.ms": "3000", "offsets.topic.num.partitions": "1"}
_PARTITIONS_PER_MEMBER = 2
_BROKERS = 3


_SIZES = numbers(MEMBERS_MIN, 1000)
_CHOSEN = choices(DESIGNS)


@dataclass(frozen=True, slots=True)
class RebalanceOptions:
    members: Annotated[str, Option("--members", metavar="N,N", help="Sizes of the group.", check=_SIZES)] = "3,10,30"
    designs: Annotated[str, Option("--designs", metavar="D,D", help="Designs to compare.", check=_CHOSEN)] = ",".join(
        DESIGNS
    )
    lag_ms: Annotated[
        int, Option("--lag-ms", min=0, max=LAG_MS_MAX, help="How far one ZooKeeper server lags behind.")
    ] = 300
    patience: Annotated[
        int, Option("--patience", metavar="S", min=10, max=3600, help="Seconds that a phase may take.")
    ] = 60
    out: Annotated[Path, Option("--out", help="The page.", check=check_page)] = Path("rebalance.html")


@command(examples=["odradek lab rebalance --members 3,10,30,100 --designs one,two,three --out rebalance.html"])
def rebalance(options: RebalanceOptions) -> None:
    """Compare joins, leaves and crashes in three designs of consumer groups.

    On a real cluster and a real ZooKeeper ensemble. Prints a table and writes a page with plots.
    """
    end_cleanly_when_killed()
    logs.configure(level="error", stream=sys.stderr)
    tell = Progress()
    outcomes: dict[tuple[str, int], Outcome] = {}
    facts = (
        f"One of ZooKeeper's three servers lags {options.lag_ms} ms; members take turns among the servers.",
        f"Sessions last {SESSION_MS} ms; there are {_PARTITIONS_PER_MEMBER} partitions per member.",
    )
    with tempfile.TemporaryDirectory(prefix="odradek-lab-") as name:
        directory = Path(name)
        tell("starting three ZooKeeper servers and three brokers …")
        with (
            LaggingEnsemble(directory, options.lag_ms) as ensemble,
            ChaosCluster(directory / "cluster", ensemble.fast, brokers=_BROKERS, settings=_SETTINGS) as cluster,
        ):
            runs = list(itertools.product(_SIZES(options.members), _CHOSEN(options.designs)))
            for number, (members, design) in enumerate(runs, 1):
                setting = _prepare(cluster, ensemble, design, members)
                so_far = f"{number} of {len(runs)}, design {design}, {members} members"
                experiment = Experiment(design, members, setting, options.patience, partial(_tell_phase, tell, so_far))
                outcomes[design, members] = experiment.run()
                # after each: an interrupted run keeps its results
                options.out.write_text(html_report(outcomes, facts))
    print(text_report([phase for outcome in outcomes.values() for phase in outcome.phases]))
    print(f"\n{' '.join(facts)}\nPlots: {options.out}")


def _tell_phase(tell: Progress, so_far: str, line: str) -> None:
    tell(f"{so_far}: {line}")


def _prepare(cluster: ChaosCluster, ensemble: LaggingEnsemble, design: str, members: int) -> Setting:
    """A topic and a group of their own, so that one run leaves nothing to the next."""
    name = f"{design}-{members}"
    partitions = _PARTITIONS_PER_MEMBER * members
    with ClusterClient(cluster.bootstrap, timeout_ms=60_000) as client:
        create_topic(client, name, partitions=partitions, replication_factor=1)
    return Setting(
        group=name,
        topic=name,
        partitions=partitions,
        servers=ensemble.servers,
        chroot=f"/{cluster.zookeeper.partition('/')[2]}",
        bootstrap=[broker.address for broker in cluster.brokers],
        session_timeout_ms=SESSION_MS,
    )
