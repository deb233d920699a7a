-- Drop every message but the dead letters and what is on its way to another queue; gives how many. `next_offset` and
-- `bytes` are those of the meta.
local function purge(next_offset, bytes)
  local dropped = redis.call('XLEN', K.log) + redis.call('ZCARD', K.kept)
  local parked = redis.call('ZRANGE', K.parked, 0, -1)
  for _, groups in ipairs({ redis.call('HKEYS', K.groups), redis.call('LRANGE', K.turns, 0, -1), parked }) do
    for _, group in ipairs(groups) do
      redis.call('UNLINK', waiting_of(group))
    end
  end
  redis.call('UNLINK', K.log, K.records, K.leases, K.returned, K.delayed, K.kept, K.turns, K.groups, K.dedup,
    K.dedup_old, K.attempts, K.attempts_old, K.expiring, K.aged, K.parked, K.parked_why)
  redis.call('HSET', K.meta, 'cursor', next_offset, 'bytes_gone', bytes or '0', 'parked', '0')
  count('purged', dropped)
  note('*', 'purged', 0, tonumber(next_offset))
  return dropped
end
