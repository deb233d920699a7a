"""The operations of SQS, closely related ones together."""
