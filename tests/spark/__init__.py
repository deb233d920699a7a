"""What needs Spark: one session serves all of them."""
