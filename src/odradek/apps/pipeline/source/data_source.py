"""The data source that Spark knows by the name `odradek`.

Every Python process in which Spark looks for data sources or plans one imports this module; only processes that need
them import readers and writers, with pyarrow, librdkafka and the decoder.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from odradek.apps.pipeline.source.schema import record_schema


class TopicDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "odradek"

    def schema(self) -> StructType:
        from odradek.apps.pipeline.source.options import includes_headers

        return record_schema(with_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        from odradek.apps.pipeline.source.options import read_options
        from odradek.apps.pipeline.source.reader import TopicBatchReader

        return TopicBatchReader(read_options(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from odradek.apps.pipeline.source.options import read_options
        from odradek.apps.pipeline.source.reader import TopicStreamReader

        return TopicStreamReader(read_options(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from odradek.apps.pipeline.source.options import write_options
        from odradek.apps.pipeline.source.writer import TopicBatchWriter

        return TopicBatchWriter(write_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from odradek.apps.pipeline.source.exactly_once import ExactlyOnceWriter
        from odradek.apps.pipeline.source.options import write_options
        from odradek.apps.pipeline.source.writer import TopicStreamWriter

        options = write_options(self.options)
        return ExactlyOnceWriter(options, schema) if options.exactly_once else TopicStreamWriter(options, schema)
