"""The Kinesis door: streams as an unmodified Kinesis Data Streams client sees them."""
