"""The console at an address that others reach: over TLS, with a password, changing nothing."""

import http.server
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from odradek.testing import OdradekCluster

from .conftest import PATIENCE_S, ConsoleProcess, await_handshake, start_console

PASSWORD = "a cage went in search"
CHANGES = ("Create topic", "Produce", "Elect preferred", "Run", "Kill", "Isolate", "Stop", "Run the experiment")
expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect


def _own_address() -> str | None:
    """Address of this machine, not loopback. Nothing is sent: the system only says from where it would be."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address: str = probe.getsockname()[0]
        return None if address.startswith("127.") else address


@pytest.fixture(scope="module")
def guarded(three_brokers: OdradekCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    address, openssl = _own_address(), shutil.which("openssl")
    if address is None or openssl is None:
        pytest.skip("needs openssl, and an address that is not loopback")
    directory = tmp_path_factory.mktemp("guarded")
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    names = ["-subj", "/CN=console", "-addext", f"subjectAltName=IP:{address}"]
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, *names],
        check=True,
        capture_output=True,
    )
    password = directory / "password"
    password.write_text(f"{PASSWORD}\n")
    arguments: list[object] = ["--host", address, "--password-file", password, "--certificate", certificate]
    arguments += ["--key", key, "--bootstrap-server", three_brokers.bootstrap_servers]
    arguments += ["--data", three_brokers.data_dir, "--lab", "--read-only"]
    console = start_console(directory, *map(str, arguments), host=address, certificate=certificate)
    yield console
    console.stop()


@pytest.fixture
def visitor(chromium: Any, guarded: ConsoleProcess) -> Iterator[Any]:
    context = chromium.new_context(base_url=guarded.url, ignore_https_errors=True, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context.new_page()
    context.close()


def _log_in(page: Any, password: str = PASSWORD) -> None:
    page.goto("/login")
    page.get_by_label("Your name, for the log of changes").fill("Ottla")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def _post_login(guarded: ConsoleProcess, certificate: Path, password: str) -> int:
    return httpx.post(
        f"{guarded.url}/login",
        data={"name": "Grete", "password": password},
        headers={"origin": guarded.url},
        verify=ssl.create_default_context(cafile=certificate),
        timeout=PATIENCE_S,
    ).status_code


def test_nobody_gets_in_without_the_password_and_nobody_stays_after_logging_out(visitor: Any) -> None:
    visitor.goto("/topics")
    assert visitor.url.endswith("/login")
    _log_in(visitor, "a bird went in search")
    expect(visitor.get_by_role("alert")).to_have_text("That is not the password.")
    assert visitor.context.cookies() == []

    _log_in(visitor)
    await_handshake(visitor)
    expect(visitor.get_by_text("read-only")).to_be_visible()
    (cookie,) = [item for item in visitor.context.cookies() if item["name"] == "odradek_session"]
    assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
    assert visitor.evaluate("document.cookie") == ""

    other_tab = visitor.context.new_page()
    other_tab.goto("/groups")
    await_handshake(other_tab)
    visitor.get_by_role("button", name="Log out").click()
    visitor.wait_for_url("**/login")
    other_tab.wait_for_url("**/login")
    visitor.goto("/topics")
    assert visitor.url.endswith("/login")


def test_a_read_only_console_offers_no_change_anywhere(visitor: Any) -> None:
    _log_in(visitor)
    await_handshake(visitor)
    for place in ("/", "/topics", "/messages", "/groups", "/reassign", "/history", "/pipelines", "/lab"):
        visitor.goto(place)
        await_handshake(visitor)
        expect(visitor.locator(".main h1, .main h2").first).to_be_visible()
        for name in CHANGES:
            assert visitor.get_by_role("button", name=name, exact=True).count() == 0, (place, name)


def test_the_page_of_another_site_can_do_nothing(visitor: Any, tmp_path: Path, guarded: ConsoleProcess) -> None:
    _log_in(visitor)
    await_handshake(visitor)
    (tmp_path / "index.html").write_text(
        f"<form method=post action='{guarded.url}/logout'><button>A kitten</button></form>"
    )
    with _site(tmp_path) as evil:
        other = visitor.context.new_page()
        other.goto(evil)
        told = other.evaluate(
            """async url => {
                const posted = await fetch(url + '/logout', {method: 'POST', credentials: 'include'})
                    .then(answer => answer.status, () => 'refused');
                const heard = await new Promise(done => {
                    const place = url.replace('https', 'wss') + '/_nicegui_ws/socket.io/';
                    const socket = new WebSocket(place + '?EIO=4&transport=websocket');
                    socket.onopen = () => done('open');
                    socket.onerror = () => done('refused');
                });
                return [posted, heard];
            }""",
            guarded.url,
        )
        assert told == ["refused", "refused"]
        other.get_by_role("button", name="A kitten").click()
        expect(other.get_by_text("requests from other sites are refused")).to_be_visible()
    visitor.goto("/topics")
    assert visitor.url.endswith("/topics"), "still logged in"


class _site:
    """Another site, for as long as it is entered."""

    def __init__(self, directory: Path) -> None:
        handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(directory))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}/"

    def __exit__(self, *about: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_who_guesses_is_slowed_down(guarded: ConsoleProcess) -> None:
    certificate = guarded.log.parent / "certificate.pem"
    with ThreadPoolExecutor(12) as guessers:
        answers = list(guessers.map(lambda n: _post_login(guarded, certificate, f"guess {n}"), range(12)))
    assert set(answers) <= {401, 429}
    assert 429 in answers
    assert _post_login(guarded, certificate, PASSWORD) == 303, "and then the right one is let in"
