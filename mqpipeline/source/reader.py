"""Reading streams once: what is there when the query is planned."""

from pyspark.sql.datasource import DataSourceReader, InputPartition

from mqpipeline.source.reading import Reading
from mqpipeline.source.streams import StreamPartition


class Reader(Reading, DataSourceReader):
    """The batch reader."""

    def partitions(self) -> list[InputPartition]:
        """Up to the newest entry that there is now."""
        options = self._options
        partitions: list[StreamPartition] = []
        with self.store:
            for stream in self.streams.names():
                first = options.after[stream].after if stream in options.after else options.first
                newest = self.streams.newest(stream, options.last)
                if newest is not None and newest.id >= first:
                    partitions += self.streams.partitions(stream, first, newest.id)
        return [*partitions]
