"""The SQS door: queues as an unmodified SQS client sees them."""
