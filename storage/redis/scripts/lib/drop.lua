-- Drop a message whatever its state, but for one on its way to another queue; gives 1, or 0 when there is none.
local function drop_in_any_state(offset)
  local record = record_of(offset)
  if record then
    detach(offset, record)
    forget(offset, record)
    return 1
  elseif redis.call('HDEL', K.dead_letters, offset) == 1 then
    redis.call('ZREM', K.dead, offset)
    redis.call('ZREM', K.dead_due, offset)
    return 1
  end
  local entry = redis.call('XRANGE', K.log, offset, offset, 'COUNT', 1)[1]
  redis.call('ZREM', K.expiring, offset)
  return drop_entry(entry)
end
