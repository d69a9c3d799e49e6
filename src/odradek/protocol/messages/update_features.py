"""UpdateFeatures (key 57): raise or lower the cluster's feature levels.

v1 names the kind of change and has a dry run.
"""

from odradek.protocol.schema import Request, Response, Struct, array, bool_, int8, int16, int32, string


class FeatureUpdateKey(Struct):
    feature: str = string()
    max_version_level: int = int16()  # below 1: remove the feature
    allow_downgrade: bool = bool_("0")
    upgrade_type: int = int8("1+", default=1)  # 1 upgrade, 2 safe downgrade, 3 unsafe downgrade


class UpdateFeaturesRequest(Request, key=57, versions="0-1", flexible="0+"):
    timeout_ms: int = int32(default=60000)  # how long the broker may take
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = bool_("1+")  # check, change nothing


class UpdatableFeatureResult(Struct):
    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class UpdateFeaturesResponse(Response, key=57, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult)
