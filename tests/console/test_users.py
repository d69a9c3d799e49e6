"""A secure cluster before the console: users log in with their own passwords, and have their own rights."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from odradek.apps.console.access import ClusterLogin
from odradek.base.config.properties import parse_properties
from odradek.client.client_security import ClientSecurity
from odradek.client.cluster_client import ClusterClient
from odradek.client.scram_admin import NewPassword, alter_credentials
from odradek.testing import OdradekCluster
from waiting import eventually

from .conftest import PATIENCE_S, ConsoleProcess, await_handshake, browser_on, start_console

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
expect.set_options(timeout=PATIENCE_S * 1000)


@pytest.fixture(scope="module")
def console(
    odradek_secure_cluster: OdradekCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConsoleProcess]:
    pytest.importorskip("nicegui", reason="the console needs odradek[console]")
    cluster = odradek_secure_cluster
    connection = [
        "--bootstrap-server",
        cluster.bootstrap_servers,
        "--login",
        str(cluster.data_dir / "console.properties"),
    ]
    process = start_console(tmp_path_factory.mktemp("console"), *connection, "--data", str(cluster.data_dir))
    yield process
    process.stop()
    assert "Traceback" not in process.log.read_text()


def _password(cluster: OdradekCluster, user: str) -> str:
    return parse_properties((cluster.data_dir / "security/users.properties").read_text())[user]


def _settings(cluster: OdradekCluster) -> Mapping[str, str]:
    return parse_properties((cluster.data_dir / "console.properties").read_text())


def _log_in(page: Any, user: str, password: str) -> None:
    page.goto("/login")
    page.get_by_label("User of the cluster").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def _open(page: Any, path: str) -> None:
    page.goto(path)
    await_handshake(page)


def test_the_administrator_makes_a_user_who_sees_what_he_may(
    chromium: Any, console: ConsoleProcess, odradek_secure_cluster: OdradekCluster
) -> None:
    cluster = odradek_secure_cluster
    for topic in ("letters", "secrets"):
        cluster.create_topic(topic, 1, 1)
    with browser_on(chromium, console) as page:
        _log_in(page, "admin", "not the password")
        expect(page.get_by_role("alert")).to_have_text("User or password is wrong.")
        _log_in(page, "admin", _password(cluster, "admin"))
        await_handshake(page)
        expect(page.get_by_text("Certificates", exact=True)).to_be_visible()
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")

        _open(page, "/users")
        page.get_by_role("button", name="Create user").click()
        page.get_by_label("User", exact=True).fill("ottla")
        page.get_by_label("Password", exact=True).fill("a cage went in search")
        page.get_by_label("The same again").fill("a cage went in search")
        page.get_by_role("dialog").get_by_role("button", name="Create", exact=True).click()
        expect(page.locator("tr", has_text="ottla")).to_contain_text("SCRAM-SHA-512")

        _open(page, "/acls")
        page.get_by_role("button", name="Add ACL").click()
        page.get_by_label("Principal").fill("User:ottla")
        page.get_by_label("Name (* for every one)").fill("letters")
        expect(page.get_by_text("Allows User:ottla Read on Topic letters, from any address.")).to_be_visible()
        page.get_by_role("dialog").get_by_role("button", name="Add", exact=True).click()
        expect(page.locator("tr", has_text="User:ottla")).to_contain_text("letters")
        _open(page, "/history/audit?q=CREATE_ACLS+ottla")
        expect(page.locator("tr", has_text="User:ottla").first).to_contain_text("User:admin")
    with browser_on(chromium, console) as page:
        _log_in(page, "ottla", "a cage went in search")
        await_handshake(page)
        _open(page, "/topics")
        expect(page.get_by_role("link", name="letters")).to_be_visible()
        assert page.get_by_role("link", name="secrets").count() == 0
        _open(page, "/topics/secrets")
        expect(page.get_by_text("This topic can't be read at the moment.")).to_be_visible()
        _open(page, "/users")
        expect(page.get_by_text("Cluster authorization failed")).to_be_visible()
        _open(page, "/history")
        expect(page.get_by_text("needs the right Describe on the cluster, which User:ottla lacks")).to_be_visible()

        security = ClientSecurity.from_file(cluster.client_properties)
        with ClusterClient(cluster.bootstrap_servers, security=security) as client:
            alter_credentials(client, "ottla", [NewPassword("SCRAM-SHA-512", "another password")])
        login = ClusterLogin(cluster.bootstrap_servers, _settings(cluster))
        eventually(lambda: login.verify("ottla", "a cage went in search") is None)
        page.goto("/reassign")  # a screen of new connections: the old password opens none
        page.wait_for_url("**/login")
