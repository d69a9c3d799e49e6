"""Access through the guard before a page that answers everything with "inside"."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("nicegui", reason="the console needs odradek[console]")

from fastapi import FastAPI
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from odradek.apps.console.access import Access, ClusterLogin
from odradek.apps.console.changes import Changes
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.guard import COOKIE, Guard
from odradek.apps.console.options import ConsoleOptions
from odradek.apps.console.sessions import IDLE_MS, Sessions
from odradek.base.clock import SYSTEM_CLOCK, Clock, ManualClock
from odradek.base.errors import FatalError
from odradek.client.broker_client import ConnectionFailed

PASSWORD = "correct horse"


async def _inside(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "inside"})
        await send({"type": "websocket.close"})
        return
    await PlainTextResponse("inside", headers={"access-control-allow-origin": "*"})(scope, receive, send)


def _client(host: str = "127.0.0.1", password: str | None = None, scheme: str = "http") -> TestClient:
    options = ConsoleOptions("127.0.0.1:9092", host=host, password=password)
    return TestClient(
        Guard(options, SYSTEM_CLOCK).before(_inside), base_url=f"{scheme}://{host}:8080", follow_redirects=False
    )


def _log_in(client: TestClient, password: str = PASSWORD, origin: str | None = None) -> int:
    origin = origin or str(client.base_url).rstrip("/")
    return client.post("/login", data={"name": "Ottla", "password": password}, headers={"origin": origin}).status_code


def test_on_loopback_the_own_machine_gets_in() -> None:
    answer = _client().get("/")
    assert answer.text == "inside"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "connect-src 'self'" in answer.headers["content-security-policy"]
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8080", ""])
def test_a_name_that_was_bent_to_loopback_is_refused(host: str) -> None:
    assert _client().get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1:8080.evil.example"]
)
def test_other_sites_pages_are_refused_also_on_the_websocket(origin: str) -> None:
    client = _client()
    assert client.get("/", headers={"origin": origin}).status_code == 403
    assert client.post("/", headers={"origin": origin}).status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/ws", headers={"origin": origin}):
        pass


def test_the_own_page_may_use_the_websocket() -> None:
    with _client().websocket_connect("ws://127.0.0.1:8080/ws", headers={"origin": "http://127.0.0.1:8080"}) as socket:
        assert socket.receive_text() == "inside"


def test_with_a_password_nothing_is_there_without_a_session() -> None:
    client = _client("10.0.0.7", PASSWORD, "https")
    page = client.get("/", headers={"accept": "text/html"})
    assert (page.status_code, page.headers["location"]) == (303, "/login")
    assert client.get("/_nicegui/x.js").status_code == 401
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/ws", headers={"origin": "https://10.0.0.7:8080"}),
    ):
        pass
    assert "Password" in client.get("/login").text


def test_the_right_password_opens_a_session_in_a_safe_cookie() -> None:
    client = _client("10.0.0.7", PASSWORD, "https")
    answer = client.post(
        "/login", data={"name": "Ottla", "password": PASSWORD}, headers={"origin": "https://10.0.0.7:8080"}
    )
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in (COOKIE, "HttpOnly", "SameSite=strict", "Secure"))
    assert client.get("/").text == "inside"
    client.post("/logout", headers={"origin": "https://10.0.0.7:8080"})
    assert client.get("/").status_code == 401


def test_wrong_passwords_foreign_forms_and_forged_cookies_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.apps.console.guard._PAUSE_AFTER_WRONG_PASSWORD_S", 0)
    client = _client("10.0.0.7", PASSWORD, "https")
    assert _log_in(client, "wrong") == 401
    assert _log_in(client, origin="https://evil.example") == 403
    assert client.post("/login", data={"name": "x", "password": PASSWORD}).status_code == 400, "no origin, no login"
    assert client.get("/", headers={"cookie": f"{COOKIE}=forged"}).status_code == 401


def test_the_login_page_shows_names_as_text() -> None:
    client = _client("10.0.0.7", PASSWORD, "https")
    answer = client.post(
        "/login",
        data={"name": '"><script>alert(1)</script>', "password": "wrong"},
        headers={"origin": "https://10.0.0.7:8080"},
    )
    assert "<script>alert" not in answer.text


def test_a_login_without_end_is_not_read_into_memory() -> None:
    """Sent in chunks, it tells no length."""
    taken, answers = count(), []

    async def receive() -> dict[str, Any]:
        assert next(taken) < 3, "read on and on"
        return {"type": "http.request", "body": b"x" * 4096, "more_body": True}

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"host", b"10.0.0.7:8080"), (b"origin", b"https://10.0.0.7:8080"), (b"transfer-encoding", b"chunked")]
    scope = {"type": "http", "method": "POST", "path": "/login", "query_string": b"", "headers": headers}
    guard = Guard(ConsoleOptions("b:1", host="10.0.0.7", password=PASSWORD), SYSTEM_CLOCK)
    asyncio.run(cast(Any, guard.before(_inside)(scope, cast(Any, receive), send)))
    assert answers[0]["status"] == 400


@pytest.mark.parametrize(("header", "value"), [("host", "[127.0.0.1"), ("origin", "http://[")])
def test_what_is_no_address_is_refused(header: str, value: str) -> None:
    assert _client().get("/", headers={header: value}).status_code == 400


def test_strange_cookies_of_other_programs_on_the_host_lock_nobody_out() -> None:
    client = _client("10.0.0.7", PASSWORD, "https")
    assert _log_in(client) == 303
    session = client.cookies[COOKIE]
    client.cookies.clear()
    for strange in ("a:b=c", "a,b=c", 'a="', "=", "a(b)=c"):
        cookie = f"{strange}; {COOKIE}={session}"
        assert client.get("/", headers={"cookie": cookie}).text == "inside", strange


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.7", "::", "console.example"])
def test_an_address_for_others_demands_a_password(host: str) -> None:
    with pytest.raises(FatalError, match="a password is needed"):
        ConsoleOptions("b:1", host=host).check()
    with pytest.raises(FatalError, match="8 characters"):
        ConsoleOptions("b:1", host=host, password="short").check()
    ConsoleOptions("b:1", host=host, password=PASSWORD).check()


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(FatalError, match="go together"):
        ConsoleOptions("b:1", certificate=Path("cert.pem")).check()


class _Login:
    """Cluster users by their passwords; brokers that are gone where `answers` is False."""

    def __init__(self, **passwords: str) -> None:
        self.passwords = passwords
        self.answers = True
        self.opened: list[Access] = []

    def verify(self, user: str, password: str) -> Access | None:
        if not self.answers:
            raise ConnectionFailed("no broker answers at 127.0.0.1:9092")
        if self.passwords.get(user) != password:
            return None
        self.opened.append(Access("127.0.0.1:9092"))
        return self.opened[-1]


def _with_users(login: _Login, clock: Clock = SYSTEM_CLOCK) -> tuple[Guard, TestClient]:
    options = ConsoleOptions("127.0.0.1:9092", login={"security.protocol": "SASL_SSL"})
    guard = Guard(options, clock, login)  # type: ignore[arg-type]
    return guard, TestClient(guard.before(_inside), base_url="http://127.0.0.1:8080", follow_redirects=False)


def test_a_user_of_the_cluster_logs_in_and_his_access_ends_with_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.apps.console.guard._PAUSE_AFTER_WRONG_PASSWORD_S", 0)
    login = _Login(Ottla=PASSWORD)
    guard, client = _with_users(login)
    assert client.get("/").status_code == 401, "loopback alone lets nobody in"
    assert "User of the cluster" in client.get("/login").text
    assert _log_in(client, "wrong") == 401
    assert login.opened == []
    assert _log_in(client) == 303
    assert client.get("/").text == "inside"
    (access,) = login.opened
    assert guard.who(dict(client.cookies), "10.0.0.7") == "Ottla at 10.0.0.7"
    assert client.get("/alive").status_code == 204
    client.post("/logout", headers={"origin": "http://127.0.0.1:8080"})
    assert access.is_closed
    assert client.get("/").status_code == 401
    assert client.get("/alive").status_code == 401


def test_no_broker_no_login_and_refused_credentials_end_a_session() -> None:
    login = _Login(Ottla=PASSWORD)
    _, client = _with_users(login)
    login.answers = False
    assert _log_in(client) == 503
    login.answers = True
    assert _log_in(client) == 303
    login.opened[-1].close()  # as when a broker refuses the password, which was changed
    assert client.get("/").status_code == 401


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "x" * 257])
def test_names_that_no_user_has_are_not_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.apps.console.guard._PAUSE_AFTER_WRONG_PASSWORD_S", 0)
    _, client = _with_users(_Login(**{name: PASSWORD}))
    told = client.post("/login", data={"name": name, "password": PASSWORD}, headers={"origin": "http://127.0.0.1:8080"})
    assert told.status_code == 401


def test_a_session_ends_when_it_is_not_used_and_after_half_a_day() -> None:
    clock = ManualClock()
    sessions = Sessions(clock)
    unused, used = sessions.open("Ottla", None), sessions.open("Ottla", None)
    for _ in range(12):
        clock.advance(IDLE_MS - 1)
        assert sessions.find(used) is not None
    assert sessions.find(unused) is None
    clock.advance(IDLE_MS - 1)
    assert sessions.find(used) is None, "twelve hours are over"


def test_sessions_are_bounded_for_each_user() -> None:
    sessions = Sessions(SYSTEM_CLOCK)
    first, others = sessions.open("Ottla", Access("b:1")), sessions.open("Felice", None)
    for _ in range(20):
        sessions.open("Ottla", None)
    assert sessions.find(first) is None
    assert sessions.find(others) is not None


def test_another_cluster_has_its_own_address_and_no_files_of_this_machine() -> None:
    options = ConsoleOptions("a:1,b:2", data=Path("data"), zookeeper="z:2181", clusters={"staging": "c:3"})
    other = options.of_cluster("c:3")
    assert (options.name, other.bootstrap, other.journal_places, other.zookeeper) == ("a:1", "c:3", (), None)
    with pytest.raises(FatalError, match="exclude each other"):
        ConsoleOptions("a:1", clusters={"staging": "c:3"}, login={}).check()


def test_a_cluster_is_chosen_by_name_and_not_by_another_site() -> None:
    options = ConsoleOptions("a:1", clusters={"staging": "c:3"})
    guard = Guard(options, SYSTEM_CLOCK)
    app = FastAPI()
    app.get("/cluster")(Consoles(options, Changes(SYSTEM_CLOCK, read_only=True), guard, SYSTEM_CLOCK).choose)
    client = TestClient(guard.before(app), base_url="http://127.0.0.1:8080", follow_redirects=False)
    assert "odradek_cluster=staging" in client.get("/cluster?name=staging").headers["set-cookie"]
    assert "set-cookie" not in client.get("/cluster?name=nowhere").headers
    crossing = {"sec-fetch-site": "cross-site"}
    assert "set-cookie" not in client.get("/cluster?name=staging", headers=crossing).headers


def test_users_and_a_password_for_all_exclude_each_other() -> None:
    with pytest.raises(FatalError, match="exclude each other"):
        ConsoleOptions("b:1", password=PASSWORD, login={}).check()
    ConsoleOptions("b:1", host="0.0.0.0", login={}).check()
    with pytest.raises(FatalError, match="over SASL"):
        ClusterLogin("b:1", {"security.protocol": "PLAINTEXT"})
