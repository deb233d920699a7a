-- Count a request that put nothing into an outbox; keep the last rejected ones.
-- KEYS     1 meta  2 rejected
-- ARGV     1 now_ms or empty  2 the counter: 'rejected' or 'handshakes'  3 what to keep of the request, or empty
--          4 rejected requests at most  5 for how long the list is kept after the last of them, ms
-- Returns  the counter
-- Keeps    nothing: counters decide nothing
-- @include numbers
-- @include time
local now = now_at(ARGV[1])
if ARGV[3] ~= '' then
  redis.call('LPUSH', KEYS[2], ARGV[3])
  redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[4]) - 1)
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
end
redis.call('HSET', KEYS[1], ARGV[2] .. '_ms', word(now))
return redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
