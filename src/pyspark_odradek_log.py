"""Where Spark looks for data sources by itself: makes `format("odradek-log")` known to every session."""

from odradek.pipeline.cold.data_source import LogDataSource as DefaultSource

__all__ = ["DefaultSource"]
