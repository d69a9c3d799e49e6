"""Background tasks of a broker: retention, checkpoints, expiration, lag."""

from collections.abc import Callable

from odradek.base.scheduler import Scheduler
from odradek.broker.admin.token_admin import TokenAdmin
from odradek.broker.api.context import BrokerServices
from odradek.broker.api.registry import load_all
from odradek.broker.log.directories.log_dirs import LogDirs

NEVER_MS = 2**62
HANDLERS_LOADED_AFTER_MS = 10_000
"""Delay of the handlers that no request has asked for. They are loaded all the same: an upgrade of the package must not
meet a running broker that still reads modules."""


def schedule_tasks(scheduler: Scheduler, logs: LogDirs, services: BrokerServices) -> None:
    config, replicas, roles = services.config, services.replicas, services.roles
    log_tasks: list[tuple[str, int, Callable[[], object]]] = [
        ("retention", config.log_retention_check_interval_ms, roles.delete_expired),
        ("recovery points", config.log_flush_offset_checkpoint_interval_ms, logs.table.checkpoint_recovery_points),
        ("log starts", config.log_flush_start_offset_checkpoint_interval_ms, logs.table.checkpoint_log_start_offsets),
    ]
    if config.log_flush_scheduler_interval_ms < NEVER_MS:
        log_tasks.append(("flush", config.log_flush_scheduler_interval_ms, logs.table.flush_overdue))
    for name, interval_ms, task in log_tasks:
        scheduler.every(name, interval_ms, task, delay_ms=config.log_initial_task_delay_ms)
    scheduler.once("handlers", load_all, delay_ms=HANDLERS_LOADED_AFTER_MS)
    scheduler.every("producers", config.producer_id_expiration_check_interval_ms, logs.table.expire_producers)
    scheduler.every(
        "high watermarks",
        config.replica_high_watermark_checkpoint_interval_ms,
        lambda: logs.table.checkpoint_high_watermarks(replicas.high_watermarks()),
    )
    scheduler.every("replica lag", max(1, config.replica_lag_time_max_ms // 2), roles.check_replicas)
    scheduler.every("offsets", config.offsets_retention_check_interval_ms, services.groups.expire_offsets, delay_ms=0)
    scheduler.every(
        "timed out transactions",
        config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        services.transactions.abort_timed_out,
    )
    scheduler.every(
        "transactional ids",
        config.transaction_remove_expired_transaction_cleanup_interval_ms,
        services.transactions.expire_ids,
    )
    if (tokens := services.security.tokens) is not None:
        interval_ms = config.delegation_token_expiry_check_interval_ms
        scheduler.every("tokens", interval_ms, lambda: _remove_expired(tokens, services))


def _remove_expired(tokens: TokenAdmin, services: BrokerServices) -> None:
    if services.controller.is_active:
        tokens.remove_expired()
