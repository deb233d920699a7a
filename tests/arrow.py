"""Arrow streams as a writer sends them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
OCTETS = "application/octet-stream"


def arrow_stream(data: Sequence[bytes | None], **columns: Any) -> bytes:
    """Encode records with this data, and further columns by name."""
    table = pa.table({"data": pa.array(data, pa.binary()), **columns})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded
