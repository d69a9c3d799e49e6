"""The arithmetic of commitment. Pure."""

from collections.abc import Iterable


def high_watermark(current: int, isr_log_end_offsets: Iterable[int]) -> int:
    """Everything that the whole ISR holds is committed; what is committed stays so."""
    return max(current, min(isr_log_end_offsets))
