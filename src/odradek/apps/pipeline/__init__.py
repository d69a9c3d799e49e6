"""Pipelines on Spark: PySpark data sources for topics and log files, and pipelines declared in TOML that use them.

It connects to brokers over the wire only, and imports only the protocol package of them. Importing this package doesn't
import pyspark: the command line does it when a command needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register `odradek` and `odradek-log` in a session that doesn't find them by itself, as with Spark Connect."""
    from odradek.apps.pipeline.segment_source.data_source import LogDataSource
    from odradek.apps.pipeline.source.data_source import TopicDataSource

    spark.dataSource.register(TopicDataSource)
    spark.dataSource.register(LogDataSource)
