"""The SQS-compatible API, for unmodified SQS clients."""
