-- Append a reply to those of a request, if it accepts one, and wake its caller when it has all.
-- KEYS     1 reply: a hash of the number of replies, `count`, the replies by number, their numbers by `key:<key>`, `closed`
--            once they were reported as complete, and `until`, when the hash expires, ms
-- ARGV     1 now_ms or empty  2 deadline, ms  3 replies at most  4 when the replies expire, ms
--          5 key that identifies the reply in a retry, or empty  6 content of the reply
-- Returns  { 0 accepted, now or before; 1 too late; 2 all replies are there }
-- Keeps    T13: at most so many replies, each once, until the deadline; an accepted one stays until it expires
-- @include time
-- @include numbers
-- @include replies
local ACCEPTED, TOO_LATE, TAKEN = 0, 1, 2
local now = now_at(ARGV[1])
local identity = 'key:' .. ARGV[5]
if ARGV[5] ~= '' and redis.call('HEXISTS', KEYS[1], identity) == 1 then
  return { ACCEPTED }
elseif now >= tonumber(ARGV[2]) or redis.call('HEXISTS', KEYS[1], 'closed') == 1 then
  return { TOO_LATE }
end
local count = tonumber(redis.call('HGET', KEYS[1], 'count') or '0') + 1
local most = tonumber(ARGV[3])
if count > most then
  return { TAKEN }
end
redis.call('HSET', KEYS[1], 'count', word(count), word(count), word(now) .. ' ' .. ARGV[6])
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[1], identity, word(count))
end
keep_until(KEYS[1], tonumber(ARGV[4]), now)
if count == most then
  wake_callers(KEYS[1])
end
return { ACCEPTED }
