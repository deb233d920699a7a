"""Samples of time series, and their rollup."""
