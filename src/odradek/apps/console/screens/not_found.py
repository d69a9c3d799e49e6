"""The page for addresses that lead nowhere: with the bar of screens, as every page."""

from fastapi import Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import Response
from nicegui import Client, app, ui
from starlette.exceptions import HTTPException

from odradek.apps.console.consoles import Consoles
from odradek.apps.console.live import Live
from odradek.apps.console.page import page
from odradek.apps.console.views.banner import not_found


def register(consoles: Consoles) -> None:
    @app.exception_handler(404)
    async def missing_page(request: Request, error: Exception) -> Response:
        endpoint = request.scope.get("endpoint")
        is_page = endpoint is None or endpoint is app or "nicegui_page_path" in request.scope
        if not is_page and isinstance(error, HTTPException):  # a file or a script: a status is enough
            return await http_exception_handler(request, error)
        with Client(ui.page(""), request=request) as client, page(consoles.here(), "", "Not found"):
            Live(not_found("page", request.url.path, "/", "Cluster"))
        return client.build_response(request, 404)
