"""AlterUserScramCredentials (key 51): passwords of users are set and removed, by the controller; every broker obeys.

Versions 0-0. The client salts the password: neither the wire nor ZooKeeper has it. Not done: nothing.
"""

from odradek.base.errors import ErrorCode, KafkaError
from odradek.broker.api.authorization import authorized_on_cluster, denial
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.broker.quotas.core.quota_table import sanitized
from odradek.broker.security.core.scram_changes import (
    NOT_THERE,
    Change,
    Deletion,
    Refusal,
    Upsertion,
    changed_config,
    refused_users,
)
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

_DONE: Refusal = (ErrorCode.NONE, "")
_NOT_CONTROLLER = (ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster.")


@handles(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0-0", may_block=True)
def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, ctx: RequestContext
) -> AlterUserScramCredentialsResponse:
    changes: list[Change] = [
        Upsertion(wanted.name, wanted.mechanism, wanted.iterations, bytes(wanted.salt), bytes(wanted.salted_password))
        for wanted in request.upsertions
    ]
    changes += [Deletion(unwanted.name, unwanted.mechanism) for unwanted in request.deletions]
    users = dict.fromkeys(change.user for change in changes)
    if not ctx.broker.controller.is_active:
        return _response(dict.fromkeys(users, _NOT_CONTROLLER))
    if not authorized_on_cluster(ctx, AclOperation.ALTER):
        refusal = denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return _response(dict.fromkeys(users, (refusal.code, refusal.message)))
    outcomes = refused_users(changes)
    for user in users:
        if user not in outcomes:
            outcomes[user] = _alter(user, [change for change in changes if change.user == user], ctx)
    return _response(outcomes)


def _alter(user: str, changes: list[Change], ctx: RequestContext) -> Refusal:
    configs, node = ctx.broker.configs, sanitized(user)
    try:
        changed = changed_config(configs.load("users", node), changes)
        if changed is None:
            return NOT_THERE
        configs.replace("users", node, changed)
    except KafkaError as error:
        return error.code, error.message
    return _DONE


def _response(outcomes: dict[str, Refusal]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message or None)
            for user, (code, message) in outcomes.items()
        ]
    )
