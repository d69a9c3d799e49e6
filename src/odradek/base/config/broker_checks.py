"""Rules between the broker's keys, beyond each one's own bounds.

Kafka refuses to start for the same reasons.
"""

import re
from collections.abc import Mapping, Sequence

from odradek.base.config.constraints import release_of
from odradek.base.config.definition import ConfigValue
from odradek.base.config.listeners import (
    Listener,
    SecurityProtocol,
    check_distinct_ports,
    parse_listeners,
    parse_protocol_map,
    parse_security_protocol,
    split_list,
)
from odradek.base.config.login_classes import check_handlers
from odradek.base.errors import ConfigError

Values = Mapping[str, ConfigValue]

_JAAS_KEY = r"listener\.name\.[^.A-Z]+\.[^.A-Z]+\.sasl\.jaas\.config"
_FIRST_RELEASE_WITH_FORMAT_2 = (0, 11)


def derive_listeners(originals: Mapping[str, str], values: Values) -> dict[str, object]:
    """Listeners, advertised listeners and the names of the inter-broker and control-plane ones."""
    protocols = parse_protocol_map(str(values["listener.security.protocol.map"]))
    text = str(values["listeners"])
    listeners = parse_listeners("listeners", text, protocols)
    check_distinct_ports(text, listeners)
    advertised = values["advertised.listeners"]
    return {
        "listeners": listeners,
        "advertised_listeners": listeners
        if advertised is None
        else parse_listeners("advertised.listeners", str(advertised), protocols),
        "inter_broker_listener_name": _inter_broker_listener_name(originals, values, protocols),
        "control_plane_listener_name": _mapped_name("control.plane.listener.name", values, protocols),
    }


def _inter_broker_listener_name(
    originals: Mapping[str, str], values: Values, protocols: Mapping[str, SecurityProtocol]
) -> str:
    name = _mapped_name("inter.broker.listener.name", values, protocols)
    if name is None:
        key = "security.inter.broker.protocol"
        return parse_security_protocol(key, str(values[key])).name
    if "security.inter.broker.protocol" in originals:
        raise ConfigError("inter.broker.listener.name and security.inter.broker.protocol can't both be set")
    return name


def _mapped_name(key: str, values: Values, protocols: Mapping[str, SecurityProtocol]) -> str | None:
    """The listener name under `key`, in upper case, which must have a protocol."""
    if values[key] is None:
        return None
    name = str(values[key]).upper()
    if name not in protocols:
        raise ConfigError(f"Invalid value {name} for configuration {key}: not found in listener.security.protocol.map")
    return name


def check(originals: Mapping[str, str], values: Values, derived: Mapping[str, object]) -> None:
    _check_broker_id(values)
    _check_log(values, derived)
    _check_message_format(originals, values)
    _check_replication(values)
    _check_groups(values)
    _check_listener_names(values, derived)
    _check_inter_broker_sasl(originals, values, derived)
    _check_connections(originals, values)
    _check_jaas(originals)
    check_handlers(originals)
    _check_authorizer(values)


def advice(originals: Mapping[str, str]) -> list[str]:
    """One sentence for each key that is accepted but deprecated."""
    deprecated = ("offsets.commit.required.acks", "log.message.format.version")
    return [f"{name} is deprecated and goes away with Kafka 4.0" for name in deprecated if name in originals]


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigError(message)


def _number(values: Values, name: str) -> int:
    value = values[name]
    assert isinstance(value, int), name
    return value


def _check_broker_id(values: Values) -> None:
    broker_id, largest = _number(values, "broker.id"), _number(values, "reserved.broker.max.id")
    _require(values["node.id"] == broker_id, "node.id and broker.id must be the same where both are set")
    if values["broker.id.generation.enable"]:
        _require(
            -1 <= broker_id <= largest,
            f"Invalid value {broker_id} for configuration broker.id: must be between -1 (generate one) and "
            f"reserved.broker.max.id, which is {largest}",
        )
    else:
        _require(
            broker_id >= 0,
            f"Invalid value {broker_id} for configuration broker.id: must be at least 0 while "
            "broker.id.generation.enable is false",
        )


def _check_log(values: Values, derived: Mapping[str, object]) -> None:
    _require(bool(derived["log_dirs"]), "log.dirs: at least one log directory must be named by log.dirs or log.dir")
    defaults = derived["topic_defaults"]
    assert isinstance(defaults, Mapping)
    retention_ms = defaults["retention.ms"]
    _require(
        retention_ms == -1 or retention_ms >= 1,
        f"Invalid value {retention_ms} for configuration log.retention.ms: must be -1 (unlimited) or at least 1",
    )
    segment_ms, jitter_ms = defaults["segment.ms"], defaults["segment.jitter.ms"]
    _require(segment_ms >= 1, f"Invalid value {segment_ms} for configuration log.roll.ms: must be at least 1")
    _require(jitter_ms >= 0, f"Invalid value {jitter_ms} for configuration log.roll.jitter.ms: must be at least 0")
    low, high = defaults["min.compaction.lag.ms"], defaults["max.compaction.lag.ms"]
    _require(low <= high, f"log.cleaner.min.compaction.lag.ms ({low}) > log.cleaner.max.compaction.lag.ms ({high})")
    threads, buffer_bytes = _number(values, "log.cleaner.threads"), _number(values, "log.cleaner.dedupe.buffer.size")
    _require(threads >= 1, f"Invalid value {threads} for configuration log.cleaner.threads: must be at least 1")
    _require(
        buffer_bytes // threads > 1 << 20,
        f"Invalid value {buffer_bytes} for configuration log.cleaner.dedupe.buffer.size: must be more than 1 MiB for "
        f"each of the {threads} log.cleaner.threads",
    )


def _check_message_format(originals: Mapping[str, str], values: Values) -> None:
    """Kafka stores older formats only with an inter.broker.protocol.version below 3.0; this broker never does."""
    name = "log.message.format.version"
    _require(
        name not in originals
        or release_of(str(values["inter.broker.protocol.version"])) >= (3, 0)
        or release_of(str(values[name])) >= _FIRST_RELEASE_WITH_FORMAT_2,
        f"Invalid value {values[name]} for configuration {name}: only message format 2 is stored. Valid here: "
        "0.11.0 and newer. Remove the key.",
    )


def _check_replication(values: Values) -> None:
    wait_ms = _number(values, "replica.fetch.wait.max.ms")
    for name in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        limit_ms = _number(values, name)
        _require(
            wait_ms <= limit_ms,
            f"Invalid value {wait_ms} for configuration replica.fetch.wait.max.ms: must not exceed {name}, which is "
            f"{limit_ms}",
        )


def _check_groups(values: Values) -> None:
    acks, factor = _number(values, "offsets.commit.required.acks"), _number(values, "offsets.topic.replication.factor")
    _require(
        -1 <= acks <= factor,
        f"Invalid value {acks} for configuration offsets.commit.required.acks: must be between -1 and "
        f"offsets.topic.replication.factor, which is {factor}",
    )


def _names(listeners: object) -> Sequence[str]:
    assert isinstance(listeners, tuple)
    return [listener.name for listener in listeners]


def _check_listener_names(values: Values, derived: Mapping[str, object]) -> None:
    names, advertised_names = _names(derived["listeners"]), _names(derived["advertised_listeners"])
    advertised = derived["advertised_listeners"]
    assert isinstance(advertised, tuple)
    _require(bool(advertised), "advertised.listeners: there must be at least one listener")
    inter_broker, control = derived["inter_broker_listener_name"], derived["control_plane_listener_name"]
    _require(
        inter_broker in advertised_names,
        f"Invalid value {inter_broker} for configuration inter.broker.listener.name: must be one of the "
        f"advertised.listeners, {','.join(advertised_names)}; give brokers one of them with inter.broker.listener.name",
    )
    _require(
        set(advertised_names) <= set(names),
        f"advertised.listeners names {','.join(advertised_names)}, but listeners has only {','.join(names)}",
    )
    _check_advertised_hosts(advertised)
    if control is not None:
        _require(control in advertised_names, f"control.plane.listener.name {control} is not in advertised.listeners")
        _require(control != inter_broker, f"control.plane.listener.name {control} is the inter-broker listener too")
    for name in split_list(str(values["early.start.listeners"] or "")):
        _require(name in names, f"early.start.listeners names {name}, which is not in listeners")


def _check_advertised_hosts(advertised: Sequence[Listener]) -> None:
    for listener in advertised:
        _require(
            listener.host != "0.0.0.0",
            "advertised.listeners can't use the address 0.0.0.0, which is not routable: name an address that "
            "clients reach",
        )


def _check_jaas(originals: Mapping[str, str]) -> None:
    """Refuse a JAAS key without listener and mechanism. Kafka ignores it and uses a JAAS file, which this broker
    doesn't read."""
    for name in originals:
        if name.endswith("sasl.jaas.config") and not re.fullmatch(_JAAS_KEY, name):
            raise ConfigError(
                f"{name} must name listener and mechanism: listener.name.LISTENER.MECHANISM.sasl.jaas.config, in lower "
                "case"
            )


AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


def _check_authorizer(values: Values) -> None:
    name = str(values["authorizer.class.name"]).strip()
    _require(
        name in ("", AUTHORIZER),
        f"Invalid value {name} for configuration authorizer.class.name: Java classes can't run in this broker, every "
        f"client that connects could do everything. Valid here: no value, or {AUTHORIZER}.",
    )
    for user in str(values["super.users"]).split(";"):
        kind, colon, _ = user.strip().partition(":")
        _require(
            not user.strip() or bool(kind and colon),
            f"Invalid value {user} for configuration super.users: a list of principals is TYPE:NAME;TYPE:NAME, as in "
            "User:admin;User:ANONYMOUS",
        )


def _check_inter_broker_sasl(originals: Mapping[str, str], values: Values, derived: Mapping[str, object]) -> None:
    protocols = parse_protocol_map(str(values["listener.security.protocol.map"]))
    name = str(derived["inter_broker_listener_name"])
    if protocols[name] not in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL):
        return
    enabled = values["sasl.enabled.mechanisms"]
    override = originals.get(f"listener.name.{name.lower()}.sasl.enabled.mechanisms")
    mechanisms = enabled if override is None else tuple(split_list(override))
    mechanism = originals.get(
        f"listener.name.{name.lower()}.sasl.mechanism.inter.broker.protocol",
        values["sasl.mechanism.inter.broker.protocol"],
    )
    _require(
        isinstance(mechanisms, tuple) and mechanism in mechanisms,
        f"sasl.mechanism.inter.broker.protocol {mechanism} must be one of sasl.enabled.mechanisms",
    )


_HOST = r"[0-9a-zA-Z\-%._:]*"


def _check_connections(originals: Mapping[str, str], values: Values) -> None:
    queued, largest = _number(values, "queued.max.request.bytes"), _number(values, "socket.request.max.bytes")
    _require(
        queued <= 0 or queued >= largest or "queued.max.request.bytes" not in originals,
        f"Invalid value {queued} for configuration queued.max.request.bytes: must be at least "
        f"socket.request.max.bytes, which is {largest}",
    )
    overrides = str(values["max.connections.per.ip.overrides"])
    _require(
        values["max.connections.per.ip"] != 0 or bool(overrides),
        "max.connections.per.ip can be 0 only where max.connections.per.ip.overrides names exceptions",
    )
    for pair in split_list(overrides):
        host = pair.rpartition(":")[0]
        _require(bool(re.fullmatch(_HOST, host)), f"max.connections.per.ip.overrides: {host!r} is not an address")
    delay_ms, idle_ms = (
        _number(values, "connection.failed.authentication.delay.ms"),
        _number(values, "connections.max.idle.ms"),
    )
    _require(
        idle_ms < 0 or delay_ms < idle_ms,
        f"Invalid value {delay_ms} for configuration connection.failed.authentication.delay.ms: must be less than "
        f"connections.max.idle.ms, which is {idle_ms}",
    )
