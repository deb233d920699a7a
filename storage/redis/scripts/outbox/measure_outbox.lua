-- Report an outbox: its counters, what waits in it, and the last rejected requests.
-- KEYS     1 meta  2 entries  3 rejected
-- ARGV     none
-- Returns  { fields of meta with their values..., entries, rejected requests }
-- Keeps    nothing: it changes nothing
return { redis.call('HGETALL', KEYS[1]), redis.call('XLEN', KEYS[2]), redis.call('LRANGE', KEYS[3], 0, -1) }
