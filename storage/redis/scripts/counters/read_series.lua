-- Chunks of one resource's time series.
-- KEYS     1.. chunks
-- Returns  each, or nil for one that is not there
return redis.call('MGET', unpack(KEYS))
