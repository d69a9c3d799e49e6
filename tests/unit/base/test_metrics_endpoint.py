"""The metrics endpoint with TLS and a login."""

import ssl
import urllib.request
from base64 import b64encode
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

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
