"""The data source that Spark knows by the name `odradek`."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from odradek.apps.pipeline.source.exactly_once import ExactlyOnceWriter
from odradek.apps.pipeline.source.options import includes_headers, read_options, write_options
from odradek.apps.pipeline.source.reader import TopicBatchReader, TopicStreamReader
from odradek.apps.pipeline.source.schema import record_schema
from odradek.apps.pipeline.source.writer import TopicBatchWriter, TopicStreamWriter


class TopicDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "odradek"

    def schema(self) -> StructType:
        return record_schema(with_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        return TopicBatchReader(read_options(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return TopicStreamReader(read_options(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return TopicBatchWriter(write_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        options = write_options(self.options)
        return ExactlyOnceWriter(options, schema) if options.exactly_once else TopicStreamWriter(options, schema)
