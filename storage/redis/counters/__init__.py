"""Rate limits, connection slots, heartbeats and time series in the hot store."""
