"""Access check before every request and every websocket of the console.

* Requests from pages of other sites are refused: `Host` must be ours (DNS rebinding has another one), and `Origin`,
which browsers add to all requests but plain navigation, must be the same.
* With a password, or with logins of cluster users, everything but the login page needs a session. Its cookie can't be
  read by scripts, goes with no request from another site and, where the console listens for others, over https only.
* Headers of every answer forbid content of other hosts, and frames on other pages.
"""

import asyncio
import hmac
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from getpass import getuser
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from odradek.apps.console.access import Access, ClusterLogin
from odradek.apps.console.login_page import login_page
from odradek.apps.console.options import ConsoleOptions, is_loopback
from odradek.apps.console.sessions import Session, Sessions
from odradek.base.clock import Clock
from odradek.base.errors import KafkaError
from odradek.base.logs import get_logger
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker

log = get_logger(__name__)

COOKIE = "odradek_session"
_LOGIN_BYTES_MAX = 4_096
_NAME_LENGTH_MAX = 60
_USER_LENGTH_MAX = 256
_PAUSE_AFTER_WRONG_PASSWORD_S = 1.0
_PAUSING_OF_AN_ADDRESS_MAX = 3
_PAUSING_MAX = 100
_VERIFYING_MAX = 4
_ALIVE = "/alive"  # pages that have lost their websocket ask whether their session has ended

_HEADERS = {
    "content-security-policy": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # not "no-referrer": with that browsers say `Origin: null` with our own forms, too
    "referrer-policy": "same-origin",
}


class Guard:
    def __init__(self, options: ConsoleOptions, clock: Clock, login: ClusterLogin | None = None) -> None:
        """`login`: of cluster users. Without it there is one password for all, or none."""
        self._options = options
        self._login = login
        self._sessions = Sessions(clock)
        self._pausing: Counter[str] = Counter()  # addresses with wrong passwords that wait for their answer
        self._verifying = 0
        self._verifiers = ThreadPoolExecutor(_VERIFYING_MAX, "login")

    @property
    def is_open(self) -> bool:
        """True if the console needs no login."""
        return self._options.password is None and self._login is None

    def session(self, cookies: Mapping[str, str]) -> Session | None:
        return self._sessions.find(cookies.get(COOKIE, ""))

    def who(self, cookies: Mapping[str, str], address: str) -> str | None:
        """Return the user of a request, for the log; None without access."""
        if self.is_open:
            return f"{getuser()} at {address}"
        session = self.session(cookies)
        return None if session is None else f"{session.name} at {address}"

    def before(self, app: ASGIApp) -> ASGIApp:
        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await app(scope, receive, send)
                return
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            answer = self._refusal(headers)
            if answer is None:
                answer = await self._answer(scope, receive, headers)
            if answer is None and scope.get("path") == _ALIVE and scope["type"] == "http":
                answer = Response(status_code=204)
            if answer is None:
                await app(scope, receive, _with_headers(send))
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await answer(scope, receive, _with_headers(send))

        return guarded

    def _refusal(self, headers: Mapping[str, str]) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        try:
            name, page = urlsplit(f"//{host}").hostname or "", urlsplit(origin or "").netloc
        except ValueError:
            return PlainTextResponse("Host or Origin is no address", 400)
        if self._options.is_local and not (is_loopback(name) or name == self._options.host):
            return PlainTextResponse("this console is for its own machine only", 403)
        if origin is not None and page.lower() != host.lower():
            log.warning("refused a request from another site", origin=origin)
            return PlainTextResponse("requests from other sites are refused", 403)
        return None

    async def _answer(self, scope: Scope, receive: Receive, headers: Mapping[str, str]) -> Response | None:
        """Return the answer of the guard itself; None lets the request pass."""
        if self.is_open:
            return None
        token = HTTPConnection(scope).cookies.get(COOKIE, "")
        if scope["type"] == "websocket":
            return None if "origin" in headers and self._sessions.find(token) else PlainTextResponse("", 403)
        request = Request(scope, receive)
        match request.method, request.url.path:
            case "GET", "/login":
                return self._login_page()
            case "POST", "/login":
                return await self._log_in(request)
            case "POST", "/logout":
                self._sessions.close(token)
                return _redirect("/login")
        if self._sessions.find(token) is not None:
            return None
        wants_page = request.method == "GET" and "text/html" in headers.get("accept", "")
        return _redirect("/login") if wants_page else PlainTextResponse("log in first", 401)

    async def _log_in(self, request: Request) -> Response:
        body = await _short_body(request) if "origin" in request.headers else None
        if body is None:
            return PlainTextResponse("this is not a login", 400)
        form = parse_qs(body.decode(errors="replace"))
        name, password = form.get("name", [""])[0], form.get("password", [""])[0]
        if self._login is None:
            name = " ".join(name.split())[:_NAME_LENGTH_MAX]
        address = request.client.host if request.client else ""
        if self._pausing[address] >= _PAUSING_OF_AN_ADDRESS_MAX or self._pausing.total() >= _PAUSING_MAX:
            return self._login_page(name, "Too many wrong passwords: wait a moment.", 429)
        if self._verifying >= _VERIFYING_MAX:
            return self._login_page(name, "Too many people log in at once: try again.", 429)
        try:
            is_right, access = await self._verify(name, password)
        except (ConnectionFailed, KafkaError, UnsupportedByBroker) as error:
            log.warning("login can't be verified", name=name, address=address, error=str(error))
            return self._login_page(name, "No broker answers, so logins are not possible.", 503)
        if not is_right:
            log.warning("wrong password", name=name, address=address)
            await self._pause(address)
            wrong = "That is not the password." if self._login is None else "User or password is wrong."
            return self._login_page(name, wrong, 401)
        if not name:
            return self._login_page("", "Enter your name: changes are logged with it.", 400)
        answer = _redirect("/")
        secure, token = not self._options.is_local, self._sessions.open(name, access)
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure)
        log.info("logged in", name=name, address=address)
        return answer

    async def _verify(self, name: str, password: str) -> tuple[bool, Access | None]:
        if self._login is None:
            return hmac.compare_digest(_digest(password), _digest(self._options.password or "")), None
        if not name or len(name) > _USER_LENGTH_MAX or not name.isprintable() or "\0" in password:
            return False, None
        self._verifying += 1
        try:
            verify = partial(self._login.verify, name, password)
            access = await asyncio.get_running_loop().run_in_executor(self._verifiers, verify)
        finally:
            self._verifying -= 1
        return access is not None, access

    def _login_page(self, name: str = "", problem: str = "", status: int = 200) -> Response:
        label = "Your name, for the log of changes" if self._login is None else "User of the cluster"
        return HTMLResponse(login_page(label, name, problem), status)

    async def _pause(self, address: str) -> None:
        self._pausing[address] += 1
        try:
            await asyncio.sleep(_PAUSE_AFTER_WRONG_PASSWORD_S)
        finally:
            self._pausing[address] -= 1
            self._pausing += Counter()  # removes addresses that wait no longer


async def _short_body(request: Request) -> bytes | None:
    """Return the body of a login; None if it is too long, of which only the first bytes are read."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LOGIN_BYTES_MAX:
            return None
    return body


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


def _redirect(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name for name, _ in message["headers"]}
            extra = [(k.encode(), v.encode()) for k, v in _HEADERS.items() if k.encode() not in present]
            kept = [(k, v) for k, v in message["headers"] if not k.startswith(b"access-control-")]
            message = {**message, "headers": [*kept, *extra]}
        await send(message)

    return sending
