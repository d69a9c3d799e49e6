"""ApiVersions (key 18): which requests this broker answers, and at which versions.

Versions 0-4. The table is derived from the handlers. A version that the broker doesn't know is answered in v0 with
UNSUPPORTED_VERSION and the versions of ApiVersions alone, so that the client can ask again (the dispatcher sends it,
see `unsupported_version`). From v3 the client tells its name and version. Not done: nothing.
"""

import re
from functools import cache

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import HANDLERS, handles
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.framing import FixedResponse
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handles(ApiKey.API_VERSIONS, versions="0-4", may_block=False)
def api_versions(request: ApiVersionsRequest, ctx: RequestContext) -> ApiVersionsResponse | FixedResponse:
    if ctx.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (SOFTWARE_NAME.fullmatch(name) and SOFTWARE_NAME.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        ctx.connection.software_name, ctx.connection.software_version = name, version
    return _answer()


@cache
def _answer() -> FixedResponse:
    return FixedResponse(ApiVersionsResponse(api_keys=supported_versions(), finalized_features_epoch=0))


def supported_versions() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=handler.min_version, max_version=handler.max_version)
        for key, handler in sorted(HANDLERS.items())
    ]


def unsupported_version() -> ApiVersionsResponse:
    own = [version for version in supported_versions() if version.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
