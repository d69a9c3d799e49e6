"""The brokers' `/metrics`: bytes in and out, which the protocol doesn't have.

Each broker is asked for its endpoint (`odradek.metrics.host` and `.port`); a broker without one, such as Apache
Kafka's, is not scraped. An endpoint on loopback is only accepted from a broker on loopback.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from odradek.apps.console.options import is_loopback
from odradek.base.errors import KafkaError
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient
from odradek.client.config_admin import broker_values

_TIMEOUT_S = 1.0
_BYTES_MAX = 64 << 20
_PREFIX = "kafka_server_brokertopicmetrics_"
_WANTED = ("bytesin_total", "bytesout_total")
_QUERY = "&".join(f"name[]={_PREFIX}{name}" for name in _WANTED)  # all of it would be lines for each partition
Endpoint = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Counters:
    bytes_in: float
    bytes_out: float


def find_endpoints(client: ClusterClient, known: Mapping[int, Endpoint | None]) -> dict[int, Endpoint | None]:
    """Addresses of the live brokers' metrics; a known one is not asked for again."""
    found: dict[int, Endpoint | None] = {}
    for broker, (host, _) in client.brokers().items():
        found[broker] = known[broker] if broker in known else _ask(client, broker, host)
    return found


def scrape(endpoint: Endpoint) -> Counters | None:
    connection = HTTPConnection(*endpoint, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", f"/metrics?{_QUERY}")
        text = connection.getresponse().read(_BYTES_MAX).decode(errors="replace")
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    return parse(text)


def parse(text: str) -> Counters | None:
    """The broker's own counters are those without a label."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith(_PREFIX):
            name, _, value = line.partition(" ")
            if "{" not in name:
                values[name.removeprefix(_PREFIX)] = float(value)
    try:
        return Counters(*(values[name] for name in _WANTED))
    except KeyError:
        return None


def _ask(client: ClusterClient, broker: int, broker_host: str) -> Endpoint | None:
    keys = ["odradek.metrics.host", "odradek.metrics.port"]
    try:
        values = broker_values(client, broker, keys)
    except (KafkaError, ConnectionFailed, UnsupportedByBroker):
        return None
    host, port = values.get(keys[0], ""), values.get(keys[1], "-1")
    if not port.isdecimal() or not 0 < int(port) < 65536 or (is_loopback(host) and not is_loopback(broker_host)):
        return None
    return (broker_host if host in ("", "0.0.0.0", "::") else host), int(port)
