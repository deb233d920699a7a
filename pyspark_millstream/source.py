"""The data source that Spark finds under the name `millstream`.

Spark starts processes that only look it up or create it; those load neither the HTTP client nor its readers and writers.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyspark_millstream.errors import OptionError
from pyspark_millstream.options import Options, read_options
from pyspark_millstream.schema import RECORD, check_writable


class MillstreamDataSource(DataSource):
    """Data source of Millstream streams; see `pyspark_millstream.options` for its options."""

    @classmethod
    def name(cls) -> str:
        return "millstream"

    def schema(self) -> StructType:
        return RECORD

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_millstream.reader import BatchReader, FilteringReader

        options = self._read_options(schema)
        return FilteringReader(options) if options.push_filters else BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from pyspark_millstream.reader import StreamReader

        return StreamReader(self._read_options(schema))

    def _read_options(self, schema: StructType) -> Options:
        if schema != RECORD:
            raise OptionError("the schema of stream records is fixed; do not specify one")
        return read_options(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_millstream.writer import BatchWriter

        return BatchWriter(self._write_options(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pyspark_millstream.writer import StreamWriter

        return StreamWriter(self._write_options(schema, overwrite))

    def _write_options(self, schema: StructType, overwrite: bool) -> Options:
        if overwrite:
            raise OptionError("records can only be appended; use mode 'append'")
        check_writable(schema)
        return read_options(self.options)
