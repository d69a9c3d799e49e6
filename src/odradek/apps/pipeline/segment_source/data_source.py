"""The data source that Spark knows by the name `odradek-log`.

Every Python process in which Spark looks for data sources imports this module; only processes that read import the
readers, with pyarrow and the decoder.
"""

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType


class LogDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "odradek-log"

    def schema(self) -> StructType:
        from odradek.apps.pipeline.segment_source import schema as columns
        from odradek.apps.pipeline.segment_source.segment_rows import log_options

        options = log_options(self.options)
        return columns.BATCHES if options.rows == "batches" else columns.records(with_headers=options.with_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        from odradek.apps.pipeline.segment_source.segment_rows import BatchRows, RecordRows, log_options

        options = log_options(self.options)
        return BatchRows(options, schema) if options.rows == "batches" else RecordRows(options, schema)
