"""DescribeUserScramCredentials (key 50): which users could log in by SCRAM, as ZooKeeper has their credentials.

Versions 0-0. Kafka's tool asks for this whenever it shows what is set for users. Never the secrets. Not done:
nothing.
"""

import re
from collections import Counter
from collections.abc import Mapping

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import require_on_cluster
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.quotas.core.quota_table import DEFAULT, desanitized, entity_of_user_node
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

# Numbers fixed by the Kafka protocol.
MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


@handles(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0-0", may_block=True)
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, ctx: RequestContext
) -> DescribeUserScramCredentialsResponse:
    try:
        require_on_cluster(ctx, AclOperation.DESCRIBE)
        known = _credentials(ctx.broker.configs.load_all("users"))
    except KafkaError as error:
        refused = DescribeUserScramCredentialsResult(error_code=error.code, error_message=error.message or None)
        return DescribeUserScramCredentialsResponse(
            error_code=error.code,
            error_message=error.message or None,
            results=[refused] * len(request.users or ()),  # without the users' names, as Kafka answers
        )
    times_named = Counter(user.name for user in request.users or ())
    results = [_result(user, times, known) for user, times in (times_named or dict.fromkeys(sorted(known), 1)).items()]
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def _credentials(users: Mapping[str, Mapping[str, str]]) -> dict[str, list[CredentialInfo]]:
    found: dict[str, list[CredentialInfo]] = {}
    for node, config in users.items():
        user, client_id = entity_of_user_node(node)
        infos = [
            CredentialInfo(mechanism=number, iterations=_iterations(config[name]))
            for name, number in MECHANISMS.items()
            if name in config
        ]
        if infos and not client_id and user != DEFAULT:
            found[desanitized(user)] = infos
    return found


def _iterations(credential: str) -> int:
    """Return the N of `salt=…,stored_key=…,server_key=…,iterations=N`."""
    found = re.search(r"(?:^|,)iterations=([0-9]{1,9})(?:,|$)", credential)
    return int(found[1]) if found else 0


def _result(user: str, times: int, known: Mapping[str, list[CredentialInfo]]) -> DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResult(user=user, error_message="", credential_infos=known.get(user, []))
    if times > 1:
        result.error_code, result.error_message = ErrorCode.DUPLICATE_RESOURCE, f"{user} is named {times} times"
        result.credential_infos = []
    elif user not in known:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"There are no credentials of {user or 'a user without a name'}"
    return result
