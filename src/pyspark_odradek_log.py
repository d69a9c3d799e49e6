"""Module that Spark looks for by itself: makes `format("odradek-log")` known to every session."""

from odradek.apps.pipeline.segment_source.data_source import LogDataSource as DefaultSource

__all__ = ["DefaultSource"]
