"""The SQS API, as unmodified SQS clients see it."""
