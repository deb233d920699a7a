-- Drop every message of a queue but its dead letters and what is on its way to another queue. Offsets go on;
-- deduplication starts anew, and no group stays parked.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 the least time since the last purge, ms
-- Returns  { OK, messages dropped, or -1 when the last purge is too recent }, or what lib/status.lua says
-- Keeps    Q10: what is dropped counts as purged; S1: offsets are not reused
-- Costs    one step for each group that has messages; the rest is freed in the background
-- @include numbers
-- @include time
-- @include status
-- @include history
-- @include queue
-- @include purge
-- @include existing_queue
local now = now_at(ARGV[1], last_ms)
local purged_ms, bytes = unpack(redis.call('HMGET', K.meta, 'purged_ms', 'bytes'))
if purged_ms and now - tonumber(purged_ms) < tonumber(ARGV[2]) then
  return { OK, -1 }
end
redis.call('HSET', K.meta, 'purged_ms', word(now))
return { OK, purge(next_offset, bytes) }
