"""Access check before every request and every websocket of the console.

* Requests that another site's page sends are refused: `Host` must be ours (a name that was bent to loopback isn't),
  and `Origin`, which browsers add to everything but plain navigation, must be the same.
* With a password, everything but the login page needs a session. Its cookie can't be read by scripts, goes with no
  request from another site and, where the console listens for others, over https only.
* Every answer tells the browser to load nothing from any other host, and to be framed by nobody.
"""

import asyncio
import hmac
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from getpass import getuser
from hashlib import sha256
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from odradek.apps.console.login_page import login_page
from odradek.apps.console.options import ConsoleOptions, is_loopback
from odradek.base.clock import Clock
from odradek.base.logs import get_logger

log = get_logger(__name__)

COOKIE = "odradek_session"
SESSION_MS = 12 * 3600 * 1000
_SESSIONS_MAX = 1_000
_LOGIN_BYTES_MAX = 4_096
_NAME_LENGTH_MAX = 60
_PAUSE_AFTER_WRONG_PASSWORD_S = 1.0
_PAUSING_OF_AN_ADDRESS_MAX = 3
_PAUSING_MAX = 100

_HEADERS = {
    "content-security-policy": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # not "no-referrer": with that browsers say `Origin: null` with our own forms, too
    "referrer-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Session:
    name: str
    until_ms: int


class Guard:
    def __init__(self, options: ConsoleOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._sessions: dict[str, Session] = {}
        self._pausing: Counter[str] = Counter()  # addresses whose wrong passwords are not yet answered

    def who(self, cookies: Mapping[str, str], address: str) -> str | None:
        """Return the person behind a request, for the log; None without access."""
        if self._options.password is None:
            return f"{getuser()} at {address}"
        session = self._session(cookies.get(COOKIE, ""))
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
            if answer is None:
                await app(scope, receive, _with_headers(send))
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await answer(scope, receive, _with_headers(send))

        return guarded

    def _refusal(self, headers: Mapping[str, str]) -> Response | None:
        host = headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if self._options.is_local and not (is_loopback(name) or name == self._options.host):
            return PlainTextResponse("this console is for its own machine only", 403)
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            log.warning("refused a request from another site", origin=origin)
            return PlainTextResponse("requests from other sites are refused", 403)
        return None

    async def _answer(self, scope: Scope, receive: Receive, headers: Mapping[str, str]) -> Response | None:
        """Return the answer of the guard itself; None lets the request pass."""
        if self._options.password is None:
            return None
        token = _cookie(headers)
        if scope["type"] == "websocket":
            return None if "origin" in headers and self._session(token) else PlainTextResponse("", 403)
        request = Request(scope, receive)
        match request.method, request.url.path:
            case "GET", "/login":
                return HTMLResponse(login_page())
            case "POST", "/login":
                return await self._log_in(request)
            case "POST", "/logout":
                self._sessions.pop(_digest(token), None)
                return _redirect("/login")
        if self._session(token) is not None:
            return None
        wants_page = request.method == "GET" and "text/html" in headers.get("accept", "")
        return _redirect("/login") if wants_page else PlainTextResponse("log in first", 401)

    async def _log_in(self, request: Request) -> Response:
        if "origin" not in request.headers or int(request.headers.get("content-length") or 0) > _LOGIN_BYTES_MAX:
            return PlainTextResponse("that is no login", 400)
        form = parse_qs((await request.body())[:_LOGIN_BYTES_MAX].decode(errors="replace"))
        name = " ".join(form.get("name", [""])[0].split())[:_NAME_LENGTH_MAX]
        password = form.get("password", [""])[0]
        address = request.client.host if request.client else ""
        if self._pausing[address] >= _PAUSING_OF_AN_ADDRESS_MAX or self._pausing.total() >= _PAUSING_MAX:
            return HTMLResponse(login_page(name, "Too many wrong passwords: wait a moment."), 429)
        if not hmac.compare_digest(_digest(password), _digest(self._options.password or "")):
            log.warning("wrong password", name=name, address=address)
            await self._pause(address)
            return HTMLResponse(login_page(name, "That is not the password."), 401)
        if not name:
            return HTMLResponse(login_page("", "Say who you are: changes are logged with your name."), 400)
        answer = _redirect("/")
        answer.set_cookie(
            COOKIE, self._open_session(name), httponly=True, samesite="strict", secure=not self._options.is_local
        )
        log.info("logged in", name=name, address=address)
        return answer

    async def _pause(self, address: str) -> None:
        self._pausing[address] += 1
        try:
            await asyncio.sleep(_PAUSE_AFTER_WRONG_PASSWORD_S)
        finally:
            self._pausing[address] -= 1
            self._pausing += Counter()  # forgets those who wait no longer

    def _open_session(self, name: str) -> str:
        now = self._clock.now_ms()
        self._sessions = {key: session for key, session in self._sessions.items() if session.until_ms > now}
        while len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        token = secrets.token_urlsafe(32)
        self._sessions[_digest(token)] = Session(name, now + SESSION_MS)
        return token

    def _session(self, token: str) -> Session | None:
        session = self._sessions.get(_digest(token))
        return session if session is not None and session.until_ms > self._clock.now_ms() else None


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _cookie(headers: Mapping[str, str]) -> str:
    found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    return "" if found is None else found.value


def _redirect(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            told = {name for name, _ in message["headers"]}
            extra = [(k.encode(), v.encode()) for k, v in _HEADERS.items() if k.encode() not in told]
            kept = [(k, v) for k, v in message["headers"] if not k.startswith(b"access-control-")]
            message = {**message, "headers": [*kept, *extra]}
        await send(message)

    return sending
