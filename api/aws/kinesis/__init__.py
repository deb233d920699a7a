"""The Kinesis-compatible API, for unmodified Kinesis Data Streams clients."""
