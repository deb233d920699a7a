-- Count a queue's messages by state, for a chart: as count_messages.lua, but it changes nothing, so what a sweep has not
-- dropped yet counts.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty
-- Returns  as count_messages.lua
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
return counts_of(now_at(ARGV[1], held[2]), tonumber(held[1]))
