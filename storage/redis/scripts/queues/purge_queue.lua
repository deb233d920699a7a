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
local held = redis.call('HMGET', K.meta, 'next', 'deleted', 'last_ms', 'purged_ms', 'bytes')
local absent = absence(held[2], held[1])
if absent then
  return absent
end
local now = now_at(ARGV[1], held[3])
if held[4] and now - tonumber(held[4]) < tonumber(ARGV[2]) then
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
redis.call('HSET', K.meta, 'cursor', held[1], 'purged_ms', word(now), 'bytes_gone', held[5] or '0', 'parked', '0')
count('purged', dropped)
note('*', 'purged', 0, tonumber(held[1]))
return { OK, dropped }
