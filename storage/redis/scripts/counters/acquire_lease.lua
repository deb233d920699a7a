-- Acquire a lease that is free or expired, or renew one's own; its fencing number rises with each new holder.
-- KEYS     1 lease: a hash of its holder, its fencing number and when it expires, ms
-- ARGV     1 now_ms, or empty for the server's time  2 the holder  3 how long the lease lasts, ms
-- Returns  { holder, fencing number, for how long the lease still lasts, ms }, of whoever has it now
-- Keeps    one holder at a time; a fencing number is of one holder, and never falls
-- @include time
-- @include numbers
local now = now_at(ARGV[1])
local holder = redis.call('HGET', KEYS[1], 'holder')
local expires = tonumber(redis.call('HGET', KEYS[1], 'expires') or '0')
local fence = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if holder and holder ~= ARGV[2] and expires > now then
  return { holder, fence, expires - now }
end
if holder ~= ARGV[2] or expires <= now then
  fence = fence + 1
end
redis.call('HSET', KEYS[1], 'holder', ARGV[2], 'fence', word(fence), 'expires', word(now + tonumber(ARGV[3])))
return { ARGV[2], fence, tonumber(ARGV[3]) }
