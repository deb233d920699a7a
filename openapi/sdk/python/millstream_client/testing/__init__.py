"""In-memory service for tests of programs that use the client.

    service = MemoryService()
    client = service.client()
    client.queue("orders").create()

The client is the real one, and only its transport is replaced. What the service does not have answers 501.
"""

from millstream_client.testing.messages import StoredMessage
from millstream_client.testing.service import MemoryService
from millstream_client.testing.streams import StoredRecord

__all__ = ["MemoryService", "StoredMessage", "StoredRecord"]
