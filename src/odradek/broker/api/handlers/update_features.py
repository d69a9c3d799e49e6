"""UpdateFeatures (key 57): the cluster's feature levels, of which Kafka 3.9 has none in ZooKeeper mode.

Versions 0-1. So every update is refused with INVALID_REQUEST, by the controller alone; the others say NOT_CONTROLLER.
Not done: nothing.
"""

from odradek.base.errors import ErrorCode
from odradek.broker.api.authorization import authorized_on_cluster, denial
from odradek.broker.api.context import RequestContext
from odradek.broker.api.registry import handles
from odradek.model.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@handles(ApiKey.UPDATE_FEATURES, versions="0-1", may_block=False)
def update_features(request: UpdateFeaturesRequest, ctx: RequestContext) -> UpdateFeaturesResponse:
    if not authorized_on_cluster(ctx, AclOperation.ALTER):
        refusal = denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return UpdateFeaturesResponse(error_code=refusal.code, error_message=refusal.message)
    if not ctx.broker.controller.is_active:
        return UpdateFeaturesResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message="This is not the correct controller for this cluster."
        )
    updates = {update.feature: update for update in request.feature_updates}
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(
                feature=name, error_code=ErrorCode.INVALID_REQUEST, error_message=_refusal(update, ctx.version)
            )
            for name, update in updates.items()
        ],
    )


def _refusal(update: FeatureUpdateKey, version: int) -> str:
    kind = update.upgrade_type if version >= 1 else SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    if not update.feature:
        return "A feature without a name can't be updated."
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"{kind} is not a kind of update."
    if update.max_version_level < 1:
        if kind == UPGRADE:
            return f"{update.feature} can be removed by a safe downgrade only."
        return f"{update.feature} can't be removed: the cluster doesn't have it."
    return f"{update.feature} is not a feature that brokers of this cluster support."
