"""The console's process: puts the parts together, and serves until it is stopped."""

import logging
import socket
import ssl
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from odradek.apps.console.access import ClusterLogin
from odradek.apps.console.changes import Changes
from odradek.apps.console.console import Machine
from odradek.apps.console.consoles import Consoles
from odradek.apps.console.guard import Guard
from odradek.apps.console.history_keeper import HistoryKeeper
from odradek.apps.console.options import ConsoleOptions
from odradek.apps.console.screens import SCREENS
from odradek.base.clock import SYSTEM_CLOCK
from odradek.base.errors import FatalError
from odradek.base.logs import get_logger
from odradek.client.bootstrap import parse_bootstrap

CHANGES_FILE = "console-changes.jsonl"
log = get_logger(__name__)

_SWITCH_INTERVAL_S = 0.0005
_RECONNECT_S = 20.0  # time for which a page without connection keeps its state; later it is loaded anew
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#c2410c" stroke-width="2">'
    '<path d="M5 3h14M5 21h14M7 3v4l2 2v6l-2 2v4M17 3v4l-2 2v6l2 2v4M9 10.2l6 1.2M9 12.6l6 1.2"/></svg>'
)


def serve(options: ConsoleOptions, machine: Machine | None = None) -> None:
    """Returns when the process is interrupted."""
    options.check()
    for bootstrap in (options.bootstrap, *options.clusters.values()):
        parse_bootstrap(bootstrap)
    _check_certificate(options)
    listener = _listen(options)
    clock = SYSTEM_CLOCK
    login = None if options.login is None else ClusterLogin(options.bootstrap, options.login)
    guard = Guard(options, clock, login)
    log_file: Path | None = options.data / CHANGES_FILE if options.data is not None else None
    changes = Changes(clock, read_only=options.read_only, file=log_file)
    consoles = Consoles(options, changes, guard, clock, machine)
    for register in SCREENS:
        register(consoles)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/cluster")(consoles.choose)
    ui.run_with(
        app,
        title="Odradek",
        favicon=_ICON,
        dark=None,
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=_RECONNECT_S,
        show_welcome_message=False,
    )
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    config = uvicorn.Config(
        guard.before(app),
        log_level="warning",
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws_max_size=4 << 20,
    )
    # feeds decode much in threads; a request for a page should not wait five milliseconds for each of its turns
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    log.info("console", url=url(options))
    if not options.is_local and options.certificate is None:
        log.warning("without --certificate browsers keep no session, unless a proxy with TLS stands before the console")
    keeper = HistoryKeeper(consoles.unattended)
    keeper.start()
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        keeper.stop()


def _check_certificate(options: ConsoleOptions) -> None:
    if options.certificate is not None and options.key is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(options.certificate, options.key)
        except OSError as error:
            reason = error.strerror or error
            raise FatalError(f"{options.certificate} and {options.key} can't be used for https: {reason}") from error


def url(options: ConsoleOptions) -> str:
    scheme = "https" if options.certificate is not None else "http"
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"{scheme}://{host}:{options.port}/"


def _listen(options: ConsoleOptions) -> socket.socket:
    """Bound before anything else, so that a port that is taken is one clear line."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        listener = socket.create_server((options.host, options.port), family=family, backlog=128)
    except OSError as error:
        raise FatalError(
            f"the console can't listen at {options.host}:{options.port}: {error.strerror}; choose another with --port"
        ) from error
    listener.setblocking(False)
    return listener
