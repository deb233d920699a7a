"""Tests of jobs on a Spark cluster."""
