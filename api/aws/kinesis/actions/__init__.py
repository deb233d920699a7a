"""The operations of Kinesis, closely related ones together."""
