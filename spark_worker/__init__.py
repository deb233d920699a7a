"""The only place that knows Spark: archive, replay, rewrite and the jobs that run them."""
