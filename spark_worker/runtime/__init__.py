"""The job runner and the Spark session that it supervises."""
