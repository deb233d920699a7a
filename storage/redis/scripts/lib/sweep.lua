-- Upkeep of a queue, bounded for each call: drop what its retention no longer covers, and move the few
-- survivors of a mostly settled head out of the log, whose memory is freed a node at a time.
local STRAGGLERS_PER_CALL, SPARSE, SPARSE_MIN = 100, 4, 1000

-- Take a message out of the state it is in.
local function detach(offset, record)
  local in_flight = redis.call('ZREM', K.leases, offset) == 1
  local delayed = not in_flight and redis.call('ZREM', K.delayed, offset) == 1
  if record[GROUP] == '' then
    redis.call('ZREM', K.returned, offset)
  elseif in_flight or delayed then
    unlock(record[GROUP], { offset })
  else
    rearrange(record[GROUP], function()
      redis.call('LREM', waiting_of(record[GROUP]), 1, offset)
    end)
  end
end

-- Drop a message that has no lease state; gives 1, or 0 when there is none.
local function drop_entry(entry)
  if not entry then
    return 0
  end
  count('bytes_gone', #entry[2][2])
  return redis.call('XDEL', K.log, entry[1])
end

-- Drop the messages that `key` has due by `ms`; with `spare`, one in flight is left to its consumer.
local function drop_due(key, ms, most, spare)
  local dropped = 0
  for _, offset in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', word(ms), 'LIMIT', 0, most)) do
    local record = record_of(offset)
    redis.call('ZREM', key, offset)
    if not record then
      local entry = redis.call('XRANGE', K.log, offset, offset, 'COUNT', 1)[1]
      if entry then
        note(offset, 'expired')
      end
      dropped = dropped + drop_entry(entry)
    elseif not (spare and redis.call('ZSCORE', K.leases, offset)) then
      detach(offset, record)
      forget(offset, record)
      note(offset, 'expired')
      dropped = dropped + 1
    end
  end
  return dropped
end

-- Out of the log, whose memory is freed a node at a time, and whose head tells what has expired.
local function set_aside(offset, entry)
  keep(offset, entry[2][2])
  redis.call('XDEL', K.log, entry[1])
end

-- The record of a message that has no lease state yet: it leaves the log, where the cursor would find it.
local function take_out_of_the_log(offset)
  local entry = redis.call('XRANGE', K.log, offset, offset, 'COUNT', 1)[1]
  if not entry then
    return nil
  end
  local arrival = string.match(entry[1], '-(%d+)$')
  local record = new_record(tonumber(arrival), '', #entry[2][2])
  record[EXPIRES] = entry[2][3] == 't' and tonumber(entry[2][4]) or 0
  redis.call('ZADD', K.aged, arrival, offset)
  set_aside(offset, entry)
  return record
end

local function drop_expired(now, retention_ms, most)
  local dropped = 0
  while dropped < most do
    local head = redis.call('XRANGE', K.log, '-', '+', 'COUNT', 1)[1]
    local offset, arrival = string.match(head and head[1] or '0-0', '^(%d+)-(%d+)$')
    local record = head and (record_of(offset) or new_record(tonumber(arrival), '', #head[2][2]))
    if head and over_age(record, now, retention_ms) then
      detach(offset, record)
      forget(offset, record)
      note(offset, 'expired')
      dropped = dropped + 1
    elseif head and record[RENEWED] > 0 then
      set_aside(offset, head)  -- it is younger than its place: those behind it may be over
    else
      break
    end
  end
  return dropped + drop_due(K.aged, now - retention_ms, most) + drop_due(K.expiring, now, most, true)
end

local function drop_old_dead(now, dead_retention_ms, most)
  local old = redis.call('ZRANGEBYSCORE', K.dead_due, '-inf', word(now - dead_retention_ms), 'LIMIT', 0, most)
  for _, offset in ipairs(old) do
    redis.call('ZREM', K.dead, offset)
    redis.call('ZREM', K.dead_due, offset)
    redis.call('HDEL', K.dead_letters, offset)
    note(offset, 'expired')
  end
  return #old
end

local function keep_stragglers(next_offset)
  local moved = 0
  for _, entry in ipairs(redis.call('XRANGE', K.log, '-', '+', 'COUNT', STRAGGLERS_PER_CALL)) do
    local offset, arrival = string.match(entry[1], '^(%d+)-(%d+)$')
    local span = next_offset - tonumber(offset)
    local sparse = span > SPARSE_MIN and span > SPARSE * redis.call('XLEN', K.log)
    if not sparse or redis.call('HEXISTS', K.records, offset) == 0 then
      break
    end
    redis.call('ZADD', K.aged, 'NX', arrival, offset)
    set_aside(offset, entry)
    moved = moved + 1
  end
  return moved
end
