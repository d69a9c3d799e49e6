"""Permits of a client to create and delete partitions: its `controller_mutation_rate`."""

from collections.abc import Callable

from odradek.broker.api.context import RequestContext
from odradek.broker.quotas.client_quotas import QuotaExceeded


def permit_for(ctx: RequestContext, *, strict_since: int) -> Callable[[int], None]:
    """Return the check of the quota before a number of partitions changes. Versions with THROTTLING_QUOTA_EXCEEDED
    answer it; clients of older versions are throttled afterwards."""
    mutations, strict = ctx.broker.quotas.mutations, ctx.version >= strict_since

    def permit(partitions: int) -> None:
        try:
            wait_ms = mutations.take(ctx.user, ctx.client_id, partitions, strict=strict)
        except QuotaExceeded as exceeded:
            ctx.throttle_ms = max(ctx.throttle_ms, exceeded.wait_ms)
            raise
        ctx.throttle_ms = max(ctx.throttle_ms, wait_ms)

    return permit
