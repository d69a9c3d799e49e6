"""kafka-reassign-partitions: propose moves of replicas, begin, follow, cancel and list them."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from odradek.apps.cli.kafka.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    EVERY_TOOL,
    Given,
    Option,
    OptionTable,
    WrongOptions,
)
from odradek.apps.cli.kafka.reassignment_json import Plan, as_json, read_plan, read_topics
from odradek.apps.cli.kafka.tool import ToolError, connect
from odradek.base.errors import ErrorCode, KafkaError
from odradek.client.broker_client import ConnectionFailed
from odradek.client.cluster_admin import describe_cluster
from odradek.client.cluster_client import ClusterClient
from odradek.client.config_admin import Resource, alter_configs
from odradek.client.log_dir_moves import ReplicaPlace, begin_moves, replica_places
from odradek.client.reassignments import alter_reassignments, ongoing_reassignments
from odradek.model.placement import place_replicas
from odradek.model.topology import Broker, PartitionReplica, ReplicaAssignment, TopicPartition
from odradek.protocol.messages.describe_configs import ConfigResourceType

TABLE = OptionTable(
    "This tool helps to move topic partitions between replicas.",
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option("verify", "show the progress of the moves of the file; clear throttles when they are done"),
    Option("generate", "propose an assignment to --broker-list, do nothing"),
    Option("execute", "begin the moves of the file"),
    Option("cancel", "cancel the moves of the file"),
    Option("list", "list the reassignments in progress"),
    Option("reassignment-json-file", "the plan", "FILE"),
    Option("topics-to-move-json-file", 'the topics, as {"topics":[{"topic":"foo"}],"version":1}', "FILE"),
    Option("broker-list", "the brokers to move to", "N,…"),
    Option("disable-rack-aware", "with --generate: ignore racks"),
    Option("throttle", "bytes per second between brokers", "N", default="-1"),
    Option("replica-alter-log-dirs-throttle", "bytes per second between directories", "N", default="-1"),
    Option("timeout", "ms to wait for moves between directories to begin", "MS", default="10000"),
    Option("additional", "also while other reassignments are in progress"),
    Option("preserve-throttles", "keep the throttles"),
    *EVERY_TOOL,
)
_PLAN, _TOPICS = "reassignment-json-file", "topics-to-move-json-file"
_EVERYWHERE = ("bootstrap-server", "command-config")
_REQUIRED = {
    "verify": (_PLAN,),
    "generate": (_TOPICS, "broker-list"),
    "execute": (_PLAN,),
    "cancel": (_PLAN,),
    "list": (),
}
_PERMITTED = {
    "verify": ("preserve-throttles",),
    "generate": ("disable-rack-aware",),
    "execute": ("additional", "throttle", "replica-alter-log-dirs-throttle", "timeout"),
    "cancel": ("preserve-throttles", "timeout"),
    "list": (),
}
_LEADER_RATE, _FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
_DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
_LEADER_REPLICAS, _FOLLOWER_REPLICAS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
_RETRY_S = 0.1

Moves = Mapping[TopicPartition, ReplicaAssignment]


def run(given: Given) -> int:
    action = given.one_action(*_REQUIRED)
    if not given.has("bootstrap-server"):
        raise WrongOptions("Please specify --bootstrap-server")
    given.require(*_REQUIRED[action])
    for name in given.order:
        if name != action and name not in (*_REQUIRED[action], *_PERMITTED[action], *_EVERYWHERE):
            raise WrongOptions(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    try:
        plan = read_plan(Path(given.text(_PLAN))) if _PLAN in _REQUIRED[action] else None
        with connect(given) as client:
            if plan is None:
                (_generate if action == "generate" else _list)(client, given)
            else:
                _WITH_PLAN[action](client, given, plan)
    except ToolError as error:
        print(error)
        return 1
    except (KafkaError, ConnectionFailed) as error:
        print(f"Error: {error}")
        return 1
    return 0


# ---- verify


def _verify(client: ClusterClient, given: Given, plan: Plan) -> None:
    ongoing, now = ongoing_reassignments(client), _replicas_now(client, plan.topics)
    print("Status of partition reassignment:")
    for tp, wanted in sorted(plan.replicas.items()):
        print(_status(tp, wanted, now.get(tp, ()), tp in ongoing))
    places = replica_places(client, plan.directories)
    states = [_directory_status(replica, target, places) for replica, target in sorted(plan.directories.items())]
    print("\n".join(states))
    is_moving = any("in progress" in state or "is being moved" in state for state in states)
    if not ongoing and not is_moving and not given.has("preserve-throttles"):
        _clear_throttles(client, plan)


def _status(tp: TopicPartition, wanted: list[int], now: Iterable[int], is_moving: bool) -> str:
    if is_moving:
        return f"Reassignment of partition {tp} is still in progress."
    if list(now) == wanted:
        return f"Reassignment of partition {tp} is completed."
    return (
        f"There is no active reassignment of partition {tp}, but replica set is {_joined(now)} "
        f"rather than {_joined(wanted)}."
    )


def _directory_status(replica: PartitionReplica, target: str, places: Mapping[PartitionReplica, ReplicaPlace]) -> str:
    tp, broker = replica.partition, replica.broker
    name = f"{tp.topic}-{tp.partition}-{broker}"
    match places.get(replica):
        case None:
            return f"Partition {tp} cannot be found in any live log directory on broker {broker}."
        case ReplicaPlace(directory=None):
            return (
                f"Partition {tp} is not found in any live log dir on broker {broker}. "
                "There is likely an offline log directory on the broker."
            )
        case ReplicaPlace(directory=current, future_directory=None) if current == target:
            return f"Reassignment of replica {name} completed successfully."
        case ReplicaPlace(directory=current, future_directory=None):
            return f"Partition {tp} on broker {broker} is not being moved from log dir {current} to {target}."
        case ReplicaPlace(future_directory=future) if future == target:
            return f"Reassignment of replica {name} is still in progress."
        case ReplicaPlace(future_directory=future):
            return f"Partition {tp} on broker {broker} is being moved to log dir {future} instead of {target}."


def _clear_throttles(client: ClusterClient, plan: Plan) -> None:
    live = set(client.brokers())
    brokers = sorted(live | {broker for replicas in plan.replicas.values() for broker in replicas})
    print(f"Clearing broker-level throttles on broker{_s(brokers)} {_joined(brokers)}")
    for broker in brokers:
        resource = Resource(ConfigResourceType.BROKER, str(broker))
        if broker in live:
            alter_configs(client, resource, {}, [_LEADER_RATE, _FOLLOWER_RATE, _DIRECTORY_RATE])
    print(f"Clearing topic-level throttles on topic{_s(plan.topics)} {','.join(plan.topics)}")
    for topic in client.topics(plan.topics):
        alter_configs(client, Resource(ConfigResourceType.TOPIC, topic), {}, [_LEADER_REPLICAS, _FOLLOWER_REPLICAS])


# ---- execute


def _execute(client: ClusterClient, given: Given, plan: Plan) -> None:
    throttle, directory_throttle = given.number("throttle") or 0, given.number("replica-alter-log-dirs-throttle") or 0
    ongoing = ongoing_reassignments(client)
    if ongoing and not given.has("additional"):
        raise ToolError(
            "Cannot execute because there is an existing partition assignment.  Use --additional to override this and "
            "create a new partition assignment in addition to the existing one. The --additional flag can also be used "
            "to change the throttle by resubmitting the current reassignment."
        )
    for broker in sorted({b for replicas in plan.replicas.values() for b in replicas} - client.brokers().keys()):
        raise ToolError(f"Error: Unknown broker id {broker}")
    now = _existing(client, plan)
    print(f"Current partition replica assignment\n\n{as_json(now)}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    if throttle >= 0 or directory_throttle >= 0:
        print(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is "
            "removed."
        )
    if throttle >= 0:
        _set_throttle(client, _sources_and_destinations(ongoing, plan, now), throttle)
    if directory_throttle >= 0:
        for broker in sorted({replica.broker for replica in plan.directories}):
            alter_configs(
                client, Resource(ConfigResourceType.BROKER, str(broker)), {_DIRECTORY_RATE: str(directory_throttle)}
            )
        print(f"The replica-alter-dir throttle limit was set to {directory_throttle} B/s")
    outcomes = alter_reassignments(client, dict(plan.replicas))
    if failed := {tp: outcome for tp, outcome in sorted(outcomes.items()) if outcome[0]}:
        errors = "\n".join(f"{tp}: {message or code.name}" for tp, (code, message) in failed.items())
        raise ToolError(f"Error reassigning partition(s):\n{errors}")
    moved = sorted(plan.replicas)
    print(f"Successfully started partition reassignment{_s(moved)} for {','.join(map(str, moved))}")
    _move_directories(client, plan.directories, (given.number("timeout") or 0) / 1000)


def _existing(client: ClusterClient, plan: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    there = _replicas_now(client, plan.topics)
    topics = {tp.topic for tp in there}
    for topic in plan.topics:
        if topic not in topics:
            raise ToolError(f"Error: Topic {topic} not found.")
    if missing := [tp for tp in sorted(plan.replicas) if tp not in there]:
        raise ToolError(f"Error: Unable to find partition: {', '.join(map(str, missing))}")
    return {tp: there[tp] for tp in plan.replicas}


def _sources_and_destinations(
    ongoing: Moves, plan: Plan, now: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[TopicPartition, tuple[set[int], set[int]]]:
    moves = {tp: (set(move.replicas) - set(move.adding), set(move.adding)) for tp, move in ongoing.items()}
    for tp, replicas in plan.replicas.items():
        sources = moves[tp][0] if tp in moves else set(now[tp])
        moves[tp] = (sources, set(replicas) - sources)
    return moves


def _set_throttle(client: ClusterClient, moves: Mapping[TopicPartition, tuple[set[int], set[int]]], rate: int) -> None:
    for topic in sorted({tp.topic for tp in moves}):
        of_topic = {tp.partition: move for tp, move in moves.items() if tp.topic == topic}
        leaders = sorted(f"{number}:{broker}" for number, (sources, _) in of_topic.items() for broker in sources)
        followers = sorted(f"{number}:{broker}" for number, (_, added) in of_topic.items() for broker in added)
        changes = {_LEADER_REPLICAS: ",".join(leaders), _FOLLOWER_REPLICAS: ",".join(followers)}
        alter_configs(client, Resource(ConfigResourceType.TOPIC, topic), changes)
    for broker in sorted({broker for sources, added in moves.values() for broker in sources | added}):
        changes = {_LEADER_RATE: str(rate), _FOLLOWER_RATE: str(rate)}
        alter_configs(client, Resource(ConfigResourceType.BROKER, str(broker)), changes)
    print(f"The inter-broker throttle limit was set to {rate} B/s")


def _move_directories(client: ClusterClient, wanted: Mapping[PartitionReplica, str], patience_s: float) -> None:
    """A replica that isn't there yet is asked for again: its move between brokers has just begun."""
    pending = dict(wanted)
    deadline = time.monotonic() + patience_s
    while pending:
        for replica, code in sorted(begin_moves(client, pending).items()):
            if code is ErrorCode.NONE:
                directory = pending.pop(replica)
                print(
                    f"Successfully started moving log directory to {directory} for replica {replica.partition} "
                    f"with broker {replica.broker} "
                )
            elif code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                raise ToolError(f"Error: Failed to alter dir for {replica}: {code.name}")
        if pending and time.monotonic() >= deadline:
            names = ",".join(map(str, sorted(pending)))
            raise ToolError(f"Timed out before log directory move{_s(pending)} could be started for: {names}")
        if pending:
            time.sleep(_RETRY_S)


# ---- cancel, list, generate


def _cancel(client: ClusterClient, given: Given, plan: Plan) -> None:
    ongoing = sorted(ongoing_reassignments(client).keys() & plan.replicas.keys())
    if ongoing:
        outcomes = alter_reassignments(client, dict.fromkeys(ongoing))
        if failed := {tp: outcome for tp, outcome in sorted(outcomes.items()) if outcome[0]}:
            errors = "\n".join(f"{tp}: {message or code.name}" for tp, (code, message) in failed.items())
            raise ToolError(f"Error cancelling partition reassignment{_s(failed)} for:\n{errors}")
        print(f"Successfully cancelled partition reassignment{_s(ongoing)} for: {','.join(map(str, ongoing))}")
    else:
        print("None of the specified partition reassignments are active.")
    places = replica_places(client, plan.directories)
    back = {r: p.directory for r, p in places.items() if p.future_directory is not None and p.directory is not None}
    if back:
        _move_directories(client, back, (given.number("timeout") or 0) / 1000)
    else:
        print("None of the specified partition moves are active.", end="")
    if not given.has("preserve-throttles"):
        _clear_throttles(client, plan)


def _list(client: ClusterClient, _given: Given) -> None:
    ongoing = ongoing_reassignments(client)
    if not ongoing:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for tp, move in sorted(ongoing.items()):
        adding = f" adding: {_joined(move.adding)}." if move.adding else ""
        removing = f" removing: {_joined(move.removing)}." if move.removing else ""
        print(f"{tp}: replicas: {_joined(move.replicas)}.{adding}{removing}")


def _generate(client: ClusterClient, given: Given) -> None:
    topics, brokers = read_topics(Path(given.text(_TOPICS))), _broker_list(given.text("broker-list"))
    cluster = describe_cluster(client)
    with_racks = not given.has("disable-rack-aware")
    chosen = {
        broker.broker_id: Broker(broker.broker_id, (), broker.rack if with_racks else None)
        for broker in cluster.brokers
        if broker.broker_id in brokers
    }
    if len({broker.rack is None for broker in chosen.values()}) > 1:
        raise ToolError(
            "Error: Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    now = _replicas_now(client, topics)
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic in topics:
        of_topic = [replicas for tp, replicas in sorted(now.items()) if tp.topic == topic]
        if not of_topic:
            raise ToolError(f"Error: Topic {topic} not found.")
        placed = place_replicas(chosen, len(of_topic), len(of_topic[0]), start=0, shift=0)
        proposed |= {TopicPartition(topic, number): replicas for number, replicas in placed.items()}
    print(f"Current partition replica assignment\n{as_json(now)}\n")
    print(f"Proposed partition reassignment configuration\n{as_json(proposed)}")


def _broker_list(text: str) -> set[int]:
    try:
        brokers = [int(number) for number in text.split(",")]
    except ValueError:
        raise ToolError(f'Error: For input string: "{text}"') from None
    if twice := sorted({broker for broker in brokers if brokers.count(broker) > 1}):
        raise ToolError(f"Error: Broker list contains duplicate entries: {twice}")
    return set(brokers)


def _replicas_now(client: ClusterClient, topics: list[str]) -> dict[TopicPartition, tuple[int, ...]]:
    return {
        TopicPartition(topic.name, state.partition): state.replicas
        for topic in client.topics(topics).values()
        for state in topic.partitions
    }


def _joined(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _s(things: Iterable[object]) -> str:
    return "" if len(list(things)) == 1 else "s"


_WITH_PLAN: dict[str, Callable[[ClusterClient, Given, Plan], None]] = {
    "verify": _verify,
    "execute": _execute,
    "cancel": _cancel,
}
