"""State of the Kinesis-compatible API kept between calls, per process."""
