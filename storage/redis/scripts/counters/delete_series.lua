-- Forget the time series of a resource that is gone.
-- KEYS     1.. chunks, whether they are there or not
-- Returns  how many were there
return redis.call('UNLINK', unpack(KEYS))
