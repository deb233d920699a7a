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
-- @include existing_queue
local now = now_at(ARGV[1], last_ms)
local purged_ms, bytes = unpack(redis.call('HMGET', K.meta, 'purged_ms', 'bytes'))
if purged_ms and now - tonumber(purged_ms) < tonumber(ARGV[2]) then
  return { OK, -1 }
end
local dropped = redis.call('XLEN', K.log) + redis.call('ZCARD', K.kept)
local parked = redis.call('ZRANGE', K.parked, 0, -1)
for _, groups in ipairs({ redis.call('HKEYS', K.groups), redis.call('LRANGE', K.turns, 0, -1), parked }) do
  for _, group in ipairs(groups) do
    redis.call('UNLINK', waiting_of(group))
  end
end
redis.call('UNLINK', K.log, K.records, K.leases, K.returned, K.delayed, K.kept, K.turns, K.groups, K.dedup,
  K.dedup_old, K.attempts, K.attempts_old, K.expiring, K.aged, K.parked, K.parked_why)
redis.call('HSET', K.meta, 'cursor', next_offset, 'purged_ms', word(now), 'bytes_gone', bytes or '0', 'parked', '0')
count('purged', dropped)
note('*', 'purged', 0, tonumber(next_offset))
return { OK, dropped }
