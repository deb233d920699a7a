-- A queue's lease state beside its log.
--
--   log           stream  messages, an entry each; field x: it has lease state, the cursor passes it by
--   meta          hash    cursor: no message from here on was delivered; counters of what has happened
--   records       hash    offset -> record, for messages that were delivered, delayed or redriven
--   leases        zset    offset by deadline: in flight
--   returned      zset    offset by offset: ready again, served before what lies at the cursor
--   delayed       zset    offset by due time
--   kept          hash    offset -> batch, of messages whose entry left the log before they did
--   dead          zset    offset by offset;  dead_due zset  offset by time of death
--   dead_letters  hash    offset -> { record, died ms, reason, batch }
--   fifo only: group:<group> list of waiting offsets, in order; turns: list of groups that are free and
--   have messages waiting; groups: hash of locked groups -> messages in flight or delayed after a nack;
--   dedup, dedup_old: deduplication id -> "<offset> <ms>"
local K = {}
for index, name in ipairs({ 'log', 'meta', 'idem', 'idem_old', 'records', 'leases', 'returned', 'delayed',
  'kept', 'dead', 'dead_due', 'dead_letters', 'turns', 'groups', 'dedup', 'dedup_old' }) do
  K[name] = KEYS[index]
end

-- A record is { receives, received ms, arrival ms, renewed ms, group, receives before, failures, crashes,
-- first received ms }: received ms is 0 when no receipt handle is good; retention counts from renewed, or
-- arrival. Receives are counted over all stays, so that no two deliveries share a number; those before the
-- last redrive are not shown. The order matters: a receipt handle knows the first five of a standard queue's
-- message, and so the first bytes of its record (settle_messages.lua).
local RECEIVES, RECEIVED, ARRIVAL, RENEWED, GROUP, BEFORE, FAILURES, CRASHES, FIRST = 1, 2, 3, 4, 5, 6, 7, 8, 9

local function new_record(arrival, group)
  return { 0, 0, arrival, 0, group, 0, 0, 0, 0 }
end

local function record_of(offset)
  local packed = redis.call('HGET', K.records, offset)
  return packed and cmsgpack.unpack(packed)
end

local function save(offset, record)
  redis.call('HSET', K.records, offset, cmsgpack.pack(record))
end

local function count(counter, by)
  if by ~= 0 then
    redis.call('HINCRBY', K.meta, counter, by)
  end
end

local function waiting_of(group)
  return string.sub(K.meta, 1, -5) .. 'group:' .. group
end

local function entry_id(offset, record)
  return offset .. '-' .. word(record[ARRIVAL])
end

-- The batch of a message: it is in the log, or was kept when the log was trimmed past it.
local function batch_of(offset, record)
  local id = entry_id(offset, record)
  local found = redis.call('XRANGE', K.log, id, id)[1]
  if found then
    return found[2][2]
  end
  return redis.call('HGET', K.kept, offset)
end

-- Remove a message's body and record, wherever the body is.
local function forget(offset, record)
  if redis.call('XDEL', K.log, entry_id(offset, record)) == 0 then
    redis.call('HDEL', K.kept, offset)
  end
  redis.call('HDEL', K.records, offset)
end

local function expired(record, now, retention_ms)
  local since = record[RENEWED] > 0 and record[RENEWED] or record[ARRIVAL]
  return since + retention_ms <= now
end

-- Fewer messages of the group stand in its way (one, unless told); the last one frees the group.
local function unlock(group, messages)
  if redis.call('HINCRBY', K.groups, group, -(messages or 1)) <= 0 then
    redis.call('HDEL', K.groups, group)
    if redis.call('EXISTS', waiting_of(group)) == 1 then
      redis.call('RPUSH', K.turns, group)
    end
  end
end

-- Put an offset back among its group's waiting ones, in order. What was delivered before lies before
-- what never was, so only offsets that returned earlier can lie in front.
local function queue_in_order(group, offset)
  local waiting = waiting_of(group)
  local before = {}
  local head = redis.call('LPOP', waiting)
  while head and tonumber(head) < tonumber(offset) do
    table.insert(before, head)
    head = redis.call('LPOP', waiting)
  end
  if head then
    redis.call('LPUSH', waiting, head)
  end
  redis.call('LPUSH', waiting, offset)
  for index = #before, 1, -1 do
    redis.call('LPUSH', waiting, before[index])
  end
end

-- In flight, or delayed after a nack -> ready.
local function give_back(offset, record)
  if record[GROUP] == '' then
    redis.call('ZADD', K.returned, offset, offset)
  else
    queue_in_order(record[GROUP], offset)
    unlock(record[GROUP])
  end
end

-- In flight -> dead-lettered (Q9: the one copy moves from the log to dead_letters).
local function bury(offset, record, reason, now)
  local batch = batch_of(offset, record)
  forget(offset, record)
  record[RECEIVED] = 0
  redis.call('HSET', K.dead_letters, offset, cmsgpack.pack({ record, now, reason, batch }))
  redis.call('ZADD', K.dead, offset, offset)
  redis.call('ZADD', K.dead_due, now, offset)
  if record[GROUP] ~= '' then
    unlock(record[GROUP])
  end
end

local function exhausted(record, attempts_max)
  return attempts_max > 0 and record[FAILURES] + record[CRASHES] >= attempts_max
end

-- A lease ran out without a verdict: a crash.
local function end_lease(offset, attempts_max, now)
  local record = record_of(offset)
  redis.call('ZREM', K.leases, offset)
  record[CRASHES] = record[CRASHES] + 1
  if exhausted(record, attempts_max) then
    bury(offset, record, 'visibility timeout passed ' .. word(record[CRASHES]) .. ' times', now)
  else
    save(offset, record)
    give_back(offset, record)
  end
end

-- Move what is due: leases that ran out and delays that passed, `moves_max` of each at most.
local function move_due(attempts_max, now, moves_max)
  local due = redis.call('ZRANGEBYSCORE', K.leases, '-inf', word(now), 'LIMIT', 0, moves_max)
  for _, offset in ipairs(due) do
    end_lease(offset, attempts_max, now)
  end
  local ripe = redis.call('ZRANGEBYSCORE', K.delayed, '-inf', word(now), 'LIMIT', 0, moves_max)
  for _, offset in ipairs(ripe) do
    redis.call('ZREM', K.delayed, offset)
    give_back(offset, record_of(offset))
  end
  return #due + #ripe
end

-- When the next lease or delay is due, or -1.
local function next_due()
  local soonest = -1
  for _, key in ipairs({ K.leases, K.delayed }) do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    if first and (soonest < 0 or tonumber(first) < soonest) then
      soonest = tonumber(first)
    end
  end
  return soonest
end
