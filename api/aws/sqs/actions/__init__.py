"""SQS operations, one group of related actions in each module."""
