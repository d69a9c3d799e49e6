"""ApiVersions (key 18): which requests this broker answers, and at which versions.

Versions 0-4. The table is the protocol's, and a test compares the handlers with it. A version that the broker doesn't
know is answered in v0 with UNSUPPORTED_VERSION and the versions of ApiVersions alone, so that the client can ask again
(the dispatcher sends it, see `unsupported_version`). From v3 the request has the client's name and version, and the
answer the finalized features: the version of transactions, if it is 2. A client uses the features with the highest
epoch that it has seen, and keeps them. Not done: nothing.
"""

import re
from functools import cache

from odradek.base.errors import ErrorCode
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import SERVED, handles
from odradek.broker.coordinator.transactions.core.transaction import EPOCH_BUMP_VERSION
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.framing import FixedResponse
from odradek.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

TRANSACTION_VERSION = "transaction.version"
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handles(ApiKey.API_VERSIONS, versions="0-4", may_block=False)
def api_versions(request: ApiVersionsRequest, ctx: RequestContext) -> ApiVersionsResponse | FixedResponse:
    if ctx.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (SOFTWARE_NAME.fullmatch(name) and SOFTWARE_NAME.fullmatch(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return _answer(ctx.broker.config.odradek_transaction_version)


@cache
def _answer(transaction_version: int) -> FixedResponse:
    answer = ApiVersionsResponse(api_keys=supported_versions(), finalized_features_epoch=0)
    if transaction_version >= EPOCH_BUMP_VERSION:
        answer.supported_features = [
            SupportedFeatureKey(name=TRANSACTION_VERSION, min_version=1, max_version=EPOCH_BUMP_VERSION)
        ]
        answer.finalized_features_epoch = 1
        answer.finalized_features = [
            FinalizedFeatureKey(
                name=TRANSACTION_VERSION, max_version_level=EPOCH_BUMP_VERSION, min_version_level=EPOCH_BUMP_VERSION
            )
        ]
    return FixedResponse(answer)


def supported_versions() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=api.min_version, max_version=api.max_version)
        for key, api in sorted(SERVED.items())
    ]


def unsupported_version() -> ApiVersionsResponse:
    own = [version for version in supported_versions() if version.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
