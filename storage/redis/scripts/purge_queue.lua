-- Drop every message of a queue but its dead letters. Offsets go on; deduplication starts anew.
-- KEYS     as lib/queue.lua names them
-- ARGV     none
-- Returns  { OK, messages dropped }, or what lib/answers.lua says
-- Keeps    Q10: what is dropped counts as purged; S1: offsets are not reused
-- Costs    one step for each group that has messages; the rest is freed in the background
-- @include answers
-- @include queue
local held = redis.call('HMGET', K.meta, 'next', 'deleted')
if held[2] then
  return { DELETED }
elseif not held[1] then
  return { UNKNOWN_LOG }
end
local dropped = redis.call('XLEN', K.log) + redis.call('HLEN', K.kept)
for _, groups in ipairs({ redis.call('HKEYS', K.groups), redis.call('LRANGE', K.turns, 0, -1) }) do
  for _, group in ipairs(groups) do
    redis.call('UNLINK', waiting_of(group))
  end
end
redis.call('UNLINK', K.log, K.records, K.leases, K.returned, K.delayed, K.kept, K.turns, K.groups, K.dedup,
  K.dedup_old)
redis.call('HSET', K.meta, 'cursor', held[1])
count('purged', dropped)
return { OK, dropped }
