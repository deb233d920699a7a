-- A queue's messages by state, as they stand: nothing moves. What is due counts as ready, since a receive would move it.
local OLDEST_LOOKED_AT, OLDEST_STRIDE, PRIORITY_MAX = 100, 10, 9

local function waits(offset)
  return not redis.call('ZSCORE', K.leases, offset) and not redis.call('ZSCORE', K.delayed, offset)
    and not is_held_back(offset)
end

-- The arrival of the first message from `offset` that waits: neither in flight nor delayed nor parked; -1 for none. Mostly
-- it is the first that there is: entries come with their bodies, so few are asked for at once.
local function oldest_from(offset)
  local from, wanted, looked_at = offset, 1, 0
  while looked_at < OLDEST_LOOKED_AT do
    local entries = redis.call('XRANGE', K.log, from, '+', 'COUNT', wanted)
    for _, entry in ipairs(entries) do
      local at, arrival = string.match(entry[1], '^(%d+)-(%d+)$')
      if waits(at) then
        return tonumber(arrival)
      end
      from = '(' .. entry[1]
    end
    if #entries < wanted then
      return -1
    end
    looked_at, wanted = looked_at + wanted, OLDEST_STRIDE
  end
  return -1
end

local function oldest_ready(cursor)
  local oldest = oldest_from(word(redis.call('EXISTS', K.turns) == 1 and 0 or cursor))
  if redis.call('EXISTS', K.returned) == 0 then
    return oldest
  end
  for priority = 0, PRIORITY_MAX do
    local from = word(-priority * LEVEL)
    local first = redis.call('ZRANGEBYSCORE', K.returned, from, word((1 - priority) * LEVEL), 'LIMIT', 0, 1)[1]
    if first then
      local arrival = record_of(first)[ARRIVAL]
      oldest = oldest < 0 and arrival or math.min(oldest, arrival)
    end
  end
  return oldest
end

-- As count_messages answers.
local function counts_of(now, next_offset)
  local delayed = redis.call('ZCOUNT', K.delayed, '(' .. word(now), '+inf')
  local in_flight = redis.call('ZCOUNT', K.leases, '(' .. word(now), '+inf')
  local living = redis.call('XLEN', K.log) + redis.call('ZCARD', K.kept)
  local meta = redis.call('HMGET', K.meta, 'deduplicated', 'acknowledged', 'expired', 'purged', 'receives', 'bytes',
    'cursor', 'skipped', 'moved_in', 'moved_out', 'parked', 'dropped', 'bytes_gone', 'dead_exhausted', 'dead_rejected',
    'dead_full', 'failed')
  for index = 1, 17 do
    meta[index] = tonumber(meta[index] or '0')
  end
  local ready = living - delayed - in_flight - meta[11]
  return { OK, ready, delayed, in_flight, redis.call('ZCARD', K.dead),
    next_offset - meta[8] - meta[9], meta[1], meta[2], meta[3], meta[4], meta[5], meta[6],
    ready > 0 and oldest_ready(meta[7]) or -1,
    redis.call('ZCARD', K.moving), meta[9], meta[10], meta[11], meta[12], meta[6] - meta[13], meta[14], meta[15],
    meta[16], meta[17] }
end
