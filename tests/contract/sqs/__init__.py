"""The SQS door, as unmodified SQS clients see it."""
