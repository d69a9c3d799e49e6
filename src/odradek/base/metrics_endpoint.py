"""`/metrics` for Prometheus: a small HTTP listener, without cost until the first scrape.

`/metrics?name[]=…&name[]=…` returns only the metrics with these names: with ten thousand partitions, all of them take a
second.

prometheus_client and the HTTP modules are loaded at the first connection, not at the start of the broker.
"""

import socket
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from odradek.base.logs import get_logger
from odradek.base.metrics import Registry, Sample
from odradek.base.threads import SupervisedThread

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

log = get_logger(__name__)

SCRAPE_S = 10.0
_STEP_S = 5.0


class MetricsEndpoint:
    def __init__(
        self,
        host: str,
        port: int,
        registry: Registry,
        wrap: Callable[[socket.socket], socket.socket] | None = None,
        login: str | None = None,
    ) -> None:
        """`wrap` adds TLS to a connection; `login`: USER:PASSWORD, which scrapers have to send."""
        self.registry = registry
        self._wrap = wrap
        self._login = login
        self._listener = socket.create_server((host, port), backlog=8)
        self._thread = SupervisedThread(target=self._serve, name="metrics", is_essential=False)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        # Closing alone doesn't wake a thread in accept; shutting the listener down does.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        """Serve one scrape at a time: scrapers are few, and the time of each one is limited."""
        while True:
            try:
                connection, address = self._listener.accept()
            except OSError:
                return
            with _cut_after(SCRAPE_S, connection):
                try:
                    connection.settimeout(_STEP_S)
                    if self._wrap is not None:
                        connection = self._wrap(connection)
                    self._answer(connection, address)
                except OSError as error:
                    log.info("scrape failed", client=address[0], error=str(error))
                except Exception:
                    log.exception("scrape failed", client=address[0])
                finally:
                    connection.close()

    def _answer(self, connection: socket.socket, address: tuple[str, int]) -> None:
        from http.server import BaseHTTPRequestHandler
        from urllib.parse import parse_qs

        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        endpoint = self

        class Scrape(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if not endpoint.lets_in(self.headers.get("Authorization", "")):
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="metrics"')
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                path, _, query = self.path.partition("?")
                if path not in ("/metrics", "/"):
                    self.send_error(404, "the metrics are at /metrics")
                    return
                body = generate_latest(_Selection(endpoint.registry, parse_qs(query).get("name[]", [])))
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE_LATEST)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                log.debug("scraped", request=format % args)

        Scrape(connection, address, None)  # type: ignore[arg-type]

    def lets_in(self, authorization: str) -> bool:
        """Check the login, in the same time for each wrong one."""
        if self._login is None:
            return True
        import hmac
        from base64 import b64encode

        expected = b"Basic " + b64encode(self._login.encode())
        return hmac.compare_digest(authorization.encode("utf-8", "replace"), expected)


@contextmanager
def _cut_after(seconds: float, connection: socket.socket) -> Iterator[None]:
    line = connection.dup()  # the connection itself may become one with TLS

    def cut() -> None:
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.name = "scrape-timeout"
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        line.close()


class _Selection:
    def __init__(self, registry: Registry, names: Collection[str]) -> None:
        self._registry = registry
        self._names = names

    def collect(self) -> "Iterable[Metric]":
        """The samples of the broker, grouped by name as the exposition format wants them."""
        from prometheus_client.metrics_core import Metric

        from odradek.base.metric_descriptions import meaning

        families: dict[str, Metric] = {}
        for sample in self._registry.collect(self._names):
            family = families.get(sample.name)
            if family is None:
                family = families[sample.name] = Metric(_family_name(sample), meaning(sample.name), sample.kind)
            family.add_sample(sample.name, dict(sample.labels), sample.value)
        return families.values()


def _family_name(sample: Sample) -> str:
    """Return the name of the family: the exposition adds `_total` to counters."""
    return sample.name.removesuffix("_total") if sample.kind == "counter" else sample.name
