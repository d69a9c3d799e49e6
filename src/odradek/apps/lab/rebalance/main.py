"""`odradek lab rebalance`: a ZooKeeper ensemble, a cluster, and the designs in turn."""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from odradek.apps.lab.cluster import ChaosCluster
from odradek.apps.lab.lagging_ensemble import LaggingEnsemble
from odradek.apps.lab.options import LAG_MS_MAX, Progress, choices, end_cleanly_when_killed, number, numbers, page_path
from odradek.apps.lab.rebalance.crew import DESIGNS, Setting
from odradek.apps.lab.rebalance.experiment import MEMBERS_MIN, Experiment, Outcome
from odradek.apps.lab.rebalance.report import html_report, text_report
from odradek.apps.lab.topics import create_topic
from odradek.base import logs
from odradek.base.errors import ErrorCode, FatalError

# Kafka's own defaults where it has them: the least session timeout, and how long a new group waits for more members.
SESSION_MS = 6000
_SETTINGS = {"group.initial.rebalance.delay.ms": "3000", "offsets.topic.num.partitions": "1"}
_PARTITIONS_PER_MEMBER = 2
_BROKERS = 3


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="odradek lab rebalance",
        description="The same joins, leaves and crashes through the three designs of consumer groups, on a real "
        "cluster and a real ZooKeeper ensemble. Prints a table and writes a page with plots.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--members", type=numbers(MEMBERS_MIN, 1000), default=[3, 10, 30], metavar="N,N", help="sizes (3,10,30)"
    )
    parser.add_argument(
        "--designs", type=choices(DESIGNS), default=list(DESIGNS), metavar="D,D", help="of one,two,three (all)"
    )
    parser.add_argument(
        "--lag-ms", type=number(0, LAG_MS_MAX), default=300, help="how far one ZooKeeper server lags behind (300)"
    )
    parser.add_argument(
        "--patience", type=number(10, 3600), default=60, metavar="S", help="seconds that a phase may take (60)"
    )
    parser.add_argument("--out", type=page_path, default=Path("rebalance.html"), help="the page (rebalance.html)")
    return parser.parse_args(list(arguments))


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
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
            runs = list(itertools.product(options.members, options.designs))
            for number, (members, design) in enumerate(runs, 1):
                setting = _prepare(cluster, ensemble, design, members)
                so_far = f"{number} of {len(runs)}, design {design}, {members} members"
                experiment = Experiment(design, members, setting, options.patience, partial(_tell_phase, tell, so_far))
                outcomes[design, members] = experiment.run()
                # after each: whoever breaks off keeps what there is
                options.out.write_text(html_report(outcomes, facts))
    print(text_report([phase for outcome in outcomes.values() for phase in outcome.phases]))
    print(f"\n{' '.join(facts)}\nPlots: {options.out}")
    return 0


def _tell_phase(tell: Progress, so_far: str, line: str) -> None:
    tell(f"{so_far}: {line}")


def _prepare(cluster: ChaosCluster, ensemble: LaggingEnsemble, design: str, members: int) -> Setting:
    """A topic and a group of their own, so that one run leaves nothing to the next."""
    name = f"{design}-{members}"
    partitions = _PARTITIONS_PER_MEMBER * members
    code = create_topic(cluster, name, partitions)
    if code is not ErrorCode.NONE:
        raise FatalError(f"the topic of the experiment could not be created: {code.name}")
    return Setting(
        group=name,
        topic=name,
        partitions=partitions,
        servers=ensemble.servers,
        chroot=f"/{cluster.zookeeper.partition('/')[2]}",
        bootstrap=[broker.address for broker in cluster.brokers],
        session_timeout_ms=SESSION_MS,
    )
