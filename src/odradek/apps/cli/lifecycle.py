"""`odradek up`, `down`, `kill`, `start`, `stop`, `cut` and `heal`: a cluster on this machine, kept in one directory."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.output import DEFAULT_DATA, warn
from odradek.apps.cli.usage import WrongUsage
from odradek.apps.figures import plural
from odradek.base.errors import ConfigError, FatalError
from odradek.local.cluster_processes import LocalCluster
from odradek.local.coordinators import CoordinatorKind
from odradek.local.links.cuts import CutFrom

DataOption = Annotated[
    Path, Option("--data", metavar="DIR", help="Directory of the cluster; nothing is written elsewhere.")
]
CoordinatorOption = Annotated[
    CoordinatorKind | None,
    Option(
        "--coordinator",
        help="The coordination server to start: Apache ZooKeeper, or the embedded one, which needs no Java.",
        show_default="as before, else apache where it can be started",
    ),
]


def _must_be_project(text: str) -> None:
    from odradek.apps.pipeline.toml_section import FILE_NAME

    if not (Path(text) / FILE_NAME).is_file():
        raise FatalError(f"there is no {FILE_NAME} in {text}; start a project with: odradek pipeline init NAME")


PipelineOption = Annotated[
    list[Path] | None,
    Option(
        "--pipeline",
        metavar="DIR",
        check=_must_be_project,
        help="A pipeline project that the console shows; may be repeated.",
    ),
]
BrokerArgument = Annotated[int, Argument(metavar="BROKER", help="The broker's id.", min=0)]


@command(
    examples=[
        "odradek up",
        "odradek up --brokers 3 --lab",
        "odradek up --secure",
        "odradek up --port 19092 --data /tmp/trial --detach",
        "odradek up --set log.retention.hours=1",
        "odradek up --unset log.retention.hours",
    ]
)
def up(
    brokers: Annotated[
        int | None,
        Option("--brokers", metavar="N", min=1, help="Number of brokers.", show_default="1, or as before"),
    ] = None,
    data: DataOption = DEFAULT_DATA,
    port: Annotated[
        int | None,
        Option("--port", min=1, max=65535, help="The first broker's port.", show_default="9092, or as before"),
    ] = None,
    zookeeper: Annotated[
        str | None,
        Option(
            "--zookeeper", metavar="HOST:PORT,…", help="An ensemble to use.", show_default="the one of --coordinator"
        ),
    ] = None,
    coordinator: CoordinatorOption = None,
    console: Annotated[
        int | None,
        Option("--console", metavar="PORT", min=1, max=65535, help="The web console's port.", show_default="8080"),
    ] = None,
    no_console: Annotated[bool, Option("--no-console", help="Without the web console.")] = False,
    lab: Annotated[
        bool, Option("--lab", help="With the laboratory in the console: crash, freeze and isolate brokers.")
    ] = False,
    secure: Annotated[bool, Option("--secure", help="With TLS, users and ACLs, and files for clients.")] = False,
    pipeline: PipelineOption = None,
    detach: Annotated[bool, Option("--detach", help="Leave it running and return.")] = False,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="A broker setting, as in server.properties; kept, may be repeated."),
    ] = None,
    unset: Annotated[
        list[str] | None,
        Option("--unset", metavar="KEY", help="Remove an earlier --set; may be repeated."),
    ] = None,
) -> None:
    """Start a coordination server and brokers, or resume what the directory holds; Ctrl-C stops them cleanly."""
    _refuse_both("--console", console, "--no-console", no_console or None)
    _refuse_both("--coordinator", coordinator, "--zookeeper", zookeeper)
    given, removed = _parse_settings(settings or []), unset or []
    if both := given.keys() & set(removed):
        raise WrongUsage(f"{', '.join(sorted(both))} can't be set and unset in one command", "--unset")
    cluster = LocalCluster(data)
    with _directory_errors(data), _nothing_left_behind(cluster):
        # Metrics have no login, and every user of this machine can read them: a secure cluster serves them only on
        # request.
        is_secure = secure or cluster.security.exists
        with_metrics = not no_console and (console is not None or not is_secure)
        try:
            start = partial(cluster.start, zookeeper, port, given, brokers, coordinator=coordinator, unset=removed)
            start(metrics=with_metrics, lab=lab, secure=secure, remark=warn)
        except ConfigError as error:
            raise WrongUsage(str(error), "--set" if given else "") from error
        _announce(cluster, zookeeper)
        if not no_console:
            _start_console(cluster, console, lab=lab, pipelines=pipeline or [])
        _leave(cluster) if detach else _watch(cluster)


@command()
def down(data: DataOption = DEFAULT_DATA) -> None:
    """Stop the brokers, then the coordination server. The data stays; `up` resumes it."""
    cluster = LocalCluster(data)
    brokers = sum(broker.pid is not None for broker in cluster.brokers)
    if cluster.stop():
        resume = "odradek up" if data == DEFAULT_DATA else f"odradek up --data {data}"
        stopped = plural(brokers, "broker") if brokers else "the coordination server"
        print(f"stopped {stopped}; the data stays in {data}, resume with: {resume}", file=sys.stderr)
    else:
        print(f"nothing was running in {data}", file=sys.stderr)


@command()
def kill(broker: BrokerArgument, data: DataOption = DEFAULT_DATA) -> None:
    """Crash one broker at once, as kill -9 or a power cut does."""
    if not LocalCluster(data).broker(broker).kill():
        raise FatalError(f"broker {broker} is not running; start it with: odradek start --data {data} {broker}")
    print(f"broker {broker} killed", file=sys.stderr)


@command()
def start(broker: BrokerArgument, data: DataOption = DEFAULT_DATA) -> None:
    """Start one broker again, with the configuration that it has."""
    started = LocalCluster(data).start_broker(broker)
    print("broker {} serves at {}:{}".format(broker, *started.address), file=sys.stderr)


@command()
def stop(broker: BrokerArgument, data: DataOption = DEFAULT_DATA) -> None:
    """Stop one broker cleanly: it hands its partitions to the others first."""
    if not LocalCluster(data).broker(broker).stop():
        raise FatalError(f"broker {broker} is not running; start it with: odradek start --data {data} {broker}")
    print(f"broker {broker} stopped", file=sys.stderr)


@command()
def cut(
    broker: BrokerArgument,
    whom: Annotated[
        list[CutFrom] | None, Option("--from", help="The other side of the cut; may be repeated.", show_default="both")
    ] = None,
    data: DataOption = DEFAULT_DATA,
) -> None:
    """Isolate one broker from ZooKeeper or the other brokers, as a broken switch does; needs `odradek up --lab`."""
    LocalCluster(data).cut(broker, whom or list(CutFrom))
    print(f"broker {broker} is isolated; undo it with: odradek heal --data {data} {broker}", file=sys.stderr)


@command()
def heal(broker: BrokerArgument, data: DataOption = DEFAULT_DATA) -> None:
    """Undo `odradek cut`."""
    LocalCluster(data).heal(broker)
    print(f"broker {broker} is connected again", file=sys.stderr)


def _refuse_both(option: str, value: object, other: str, other_value: object) -> None:
    if value is not None and other_value is not None:
        raise WrongUsage(f"{option} and {other} exclude each other", option)


def _announce(cluster: LocalCluster, zookeeper: str | None) -> None:
    print(f"bootstrap.servers={cluster.bootstrap_servers}", flush=True)
    if zookeeper is None and cluster.coordinator is CoordinatorKind.EMBEDDED:
        hint = "in production, give an ensemble of Apache ZooKeeper with --zookeeper"
        print(f"coordination server: embedded, for this machine only; {hint}", file=sys.stderr)
    if cluster.security.exists:
        print(f"administrator: --command-config {cluster.security.client_file}", file=sys.stderr)
        print(f"application:   --command-config {cluster.security.application_file}", file=sys.stderr)


def _start_console(cluster: LocalCluster, port: int | None, *, lab: bool, pipelines: list[Path]) -> None:
    is_secure = cluster.security.exists
    login = cluster.security.console_file if is_secure else None
    message = cluster.console.start(cluster.bootstrap_servers, port, lab=lab, pipelines=pipelines, login=login)
    print(message, file=sys.stderr)
    if is_secure and cluster.console.is_running:
        print(f"log in as admin: the password is in {cluster.security.users_file}", file=sys.stderr)


def _parse_settings(settings: list[str]) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in settings]
    for key, separator, _ in pairs:
        if not key or not separator:
            raise WrongUsage(f"{key!r} is not KEY=VALUE", "--set")
    return {key: value for key, _, value in pairs}


@contextmanager
def _nothing_left_behind(cluster: LocalCluster) -> Iterator[None]:
    """Stop the started processes again if the start fails or is interrupted (Ctrl-C, SIGTERM)."""
    ran_before = cluster.running

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except BrokenPipeError:  # of the terminal, not of the cluster
        raise
    except BaseException as error:
        if not ran_before:
            _stop(cluster, is_interrupted=isinstance(error, KeyboardInterrupt))
        raise


def _stop(cluster: LocalCluster, *, is_interrupted: bool) -> None:
    """Stop the cluster. A second Ctrl-C ends the wait, not the processes."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if is_interrupted:
        print("stopping", file=sys.stderr)
    try:
        cluster.stop()
    except KeyboardInterrupt:
        print(f"interrupted; stop what still runs with: odradek down --data {cluster.data}", file=sys.stderr)
        raise


@contextmanager
def _directory_errors(data: Path) -> Iterator[None]:
    """Report an unusable directory or a full disk in one line, with advice."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else data
        raise FatalError(
            f"{where}: {error.strerror or error}; choose another directory with: odradek up --data DIR"
        ) from error


def _leave(cluster: LocalCluster) -> None:
    print(f"running in the background; stop it with: odradek down --data {cluster.data}", file=sys.stderr)


def _watch(cluster: LocalCluster) -> None:
    """Wait until Ctrl-C, or until another command stops the cluster."""
    print("Ctrl-C stops it", file=sys.stderr)
    try:
        _tell_of_stopped_brokers(cluster)
    except KeyboardInterrupt:
        _stop(cluster, is_interrupted=True)


def _tell_of_stopped_brokers(cluster: LocalCluster) -> None:
    """Print each broker that stops, once, while the cluster runs; `start` starts it again."""
    gone: set[int] = set()
    while cluster.running:
        stopped = {broker.id for broker in cluster.brokers if broker.pid is None}
        for broker_id in sorted(stopped - gone):
            log_file = cluster.broker(broker_id).log_file
            hint = f"odradek start --data {cluster.data} {broker_id}"
            print(f"broker {broker_id} has stopped (see {log_file}); bring it back with: {hint}", file=sys.stderr)
        gone = stopped
        time.sleep(0.5)
