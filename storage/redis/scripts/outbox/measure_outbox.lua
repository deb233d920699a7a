-- Report an outbox: its counters, what waits in it, and the last rejected requests.
-- KEYS     1 meta  2 entries  3 rejected
-- ARGV     1 rejected requests at most; 0 none
-- Returns  { fields of meta with their values..., entries, the first entry's sequence or -1, rejected requests }
-- Keeps    nothing: it changes nothing
local rejected = ARGV[1] ~= '0' and redis.call('LRANGE', KEYS[3], 0, tonumber(ARGV[1]) - 1) or {}
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
local sequence = first and string.match(first[1], '^%d+') or -1
return { redis.call('HGETALL', KEYS[1]), redis.call('XLEN', KEYS[2]), sequence, rejected }
