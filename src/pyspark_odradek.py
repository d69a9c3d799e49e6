"""Module that Spark looks for by itself: makes `format("odradek")` known to every session."""

from odradek.apps.pipeline.source.data_source import TopicDataSource as DefaultSource

__all__ = ["DefaultSource"]
