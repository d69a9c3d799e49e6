"""The metrics endpoint with TLS and a login."""

import socket
import ssl
import threading
import urllib.request
from base64 import b64encode
from http.client import RemoteDisconnected
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from odradek.base import metrics_endpoint
from odradek.base.config.broker_config import BrokerConfig
from odradek.base.errors import ConfigError
from odradek.base.metrics import Registry
from odradek.base.metrics_endpoint import MetricsEndpoint
from odradek.broker.security.authentication.metrics_access import MetricsAccess, metrics_access
from odradek.security.certificates import issue, new_authority


def access_of(**settings: object) -> MetricsAccess:
    given = {f"odradek.metrics.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
    return metrics_access(BrokerConfig.from_properties({"zookeeper.connect": "zk:1", **given}))


def test_tls_and_a_login(tmp_path: Path) -> None:
    authority = new_authority("CA", 2)
    own = issue(authority, "metrics", ["localhost"], 2)
    (tmp_path / "own.pem").write_bytes(own.key + own.certificate)
    access = access_of(keystore_location=tmp_path / "own.pem", login="prometheus:s3:cret", host="0.0.0.0")
    assert access.scheme == "https"
    assert "s3:cret" not in repr(access)
    registry = Registry()
    registry.gauge("some_gauge", lambda: 5)
    endpoint = MetricsEndpoint("127.0.0.1", 0, registry, access.wrap, access.login)
    endpoint.start()
    try:
        context = ssl.create_default_context(cadata=authority.certificate.decode())

        def scrape(login: str | None, scheme: str = "https") -> str:
            headers = {} if login is None else {"Authorization": "Basic " + b64encode(login.encode()).decode()}
            request = urllib.request.Request(f"{scheme}://localhost:{endpoint.port}/metrics", headers=headers)
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:
                return str(answer.read())

        assert "some_gauge 5.0" in scrape("prometheus:s3:cret")
        for wrong in (None, "prometheus:other", "ü:ü", ""):
            with pytest.raises(HTTPError, match="401"):
                scrape(wrong)
        with pytest.raises((URLError, ConnectionError)):
            scrape("prometheus:s3:cret", "http")
        assert "some_gauge 5.0" in scrape("prometheus:s3:cret"), "it goes on"
    finally:
        endpoint.stop()


@pytest.mark.parametrize("begins", [b"GET /metrics HTTP/1.0\r\nX: ", b""])
def test_a_client_that_sends_its_request_byte_by_byte_holds_up_others_for_its_own_seconds(
    monkeypatch: pytest.MonkeyPatch, begins: bytes
) -> None:
    monkeypatch.setattr(metrics_endpoint, "SCRAPE_S", 0.3)
    registry = Registry()
    registry.gauge("some_gauge", lambda: 5)
    endpoint, stopped = MetricsEndpoint("127.0.0.1", 0, registry), threading.Event()
    endpoint.start()

    def trickle(slow: socket.socket) -> None:
        try:
            slow.sendall(begins)
            while not stopped.wait(0.02):
                slow.sendall(b"x")
        except OSError:
            stopped.set()

    try:
        with socket.create_connection(("127.0.0.1", endpoint.port), 20) as slow:
            sender = threading.Thread(target=trickle, args=(slow,))
            sender.start()
            with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=20) as answer:
                assert b"some_gauge 5.0" in answer.read()
            assert stopped.wait(20), "the slow client's connection has ended"
            sender.join()
    finally:
        stopped.set()
        endpoint.stop()


def test_a_metric_that_fails_does_not_end_the_endpoint() -> None:
    registry, broken = Registry(), [True]

    def value() -> float:
        if broken.pop() if broken else False:
            raise ValueError("broken")
        return 5

    registry.gauge("some_gauge", value)
    endpoint = MetricsEndpoint("127.0.0.1", 0, registry)
    endpoint.start()
    try:
        with pytest.raises((URLError, ConnectionError, RemoteDisconnected)):
            urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=20).read()
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=20) as answer:
            assert b"some_gauge 5.0" in answer.read()
    finally:
        endpoint.stop()


def test_settings_that_can_not_be_used() -> None:
    assert access_of() == MetricsAccess()
    assert access_of(login="a:b").login == "a:b", "on this machine"
    with pytest.raises(ConfigError, match="USER:PASSWORD") as error:
        access_of(login="hunter2")
    assert "hunter2" not in str(error.value)
    with pytest.raises(ConfigError, match="clear text"):
        access_of(login="a:b", host="0.0.0.0")
    with pytest.raises(ConfigError, match=r"odradek\.metrics\.keystore\.location"):
        access_of(keystore_location="/no/such/file")
