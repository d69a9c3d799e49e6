"""DescribeClientQuotas (key 48): the quotas of users, client ids and addresses that match a filter."""

from odradek.protocol.schema import Request, Response, Struct, array, bool_, float64, int8, int16, int32, string


class ComponentData(Struct):
    entity_type: str = string()  # "user", "client-id" or "ip"
    match_type: int = int8()  # 0 exactly, 1 the default, 2 any that is named
    match: str | None = string(nullable="0+")  # the name; None unless match_type is 0


class DescribeClientQuotasRequest(Request, key=48, versions="0-1", flexible="1+"):
    components: list[ComponentData] = array(ComponentData)
    strict: bool = bool_()  # only entities that have no other components


class EntityData(Struct):
    entity_type: str = string()  # "user", "client-id" or "ip"
    entity_name: str | None = string(nullable="0+")  # None: the default of its type


class ValueData(Struct):
    key: str = string()  # the quota, like producer_byte_rate
    value: float = float64()


class EntryData(Struct):
    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


class DescribeClientQuotasResponse(Response, key=48, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32()  # how long the client should pause for its quota
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[EntryData] | None = array(EntryData, nullable="0+")
