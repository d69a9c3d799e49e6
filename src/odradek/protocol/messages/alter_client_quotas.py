"""AlterClientQuotas (key 49): set and remove quotas."""

from odradek.protocol.schema import Request, Response, Struct, array, bool_, float64, int16, int32, string


class EntityData(Struct):
    entity_type: str = string()  # "user", "client-id" or "ip"
    entity_name: str | None = string(nullable="0+")  # None: the default of its type


class OpData(Struct):
    key: str = string()  # the quota, like producer_byte_rate
    value: float = float64()
    remove: bool = bool_()  # instead of setting it


class EntryData(Struct):
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Request, key=49, versions="0-1", flexible="1+"):
    entries: list[EntryData] = array(EntryData)
    validate_only: bool = bool_()  # check, change nothing


class EntryResult(Struct):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(Response, key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    entries: list[EntryResult] = array(EntryResult)
