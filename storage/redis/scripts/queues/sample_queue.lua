-- Count a queue's messages by state, for a chart: as count_messages.lua, but it changes nothing, so what a sweep has not
-- dropped yet counts.
-- KEYS     as lib/queue.lua names them, then those of report_consumers.lua
-- ARGV     1 now_ms or empty  2 how long a consumer counts after its last receive, ms
-- Returns  { OK, counts as count_messages.lua, then the number of consumers, { bucket, acknowledgements... } as
--          add_acknowledge_times.lua adds them }
-- @include status
local held = redis.call('HMGET', KEYS[2], 'next', 'last_ms', 'deleted')
if held[3] then
  return { DELETED }
elseif not held[1] then
  return { UNKNOWN_LOG }  -- as many idle queues are: what follows takes ten times as long
end
-- @include numbers
-- @include time
-- @include history
-- @include queue
-- @include counts
local now = now_at(ARGV[1], held[2])
local counts = counts_of(now, tonumber(held[1]))
counts[#counts + 1] = redis.call('ZCOUNT', KEYS[32], word(now - tonumber(ARGV[2])), '+inf')
counts[#counts + 1] = redis.call('HGETALL', KEYS[34])
return counts
