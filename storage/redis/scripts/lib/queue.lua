-- A queue's lease state beside its log.
--
--   log           stream  messages, an entry each; field x: it has lease state, the cursor passes it by;
--                         field t: the end of its own time to live
--   meta          hash    cursor: no message from here on was delivered; counters of what has happened
--   records       hash    offset -> record, for messages that were delivered, delayed, grouped or redriven
--   leases        zset    offset by deadline: in flight
--   returned      zset    offset by priority and offset: ready again, or of a priority of its own; served
--                         before what lies at the cursor
--   delayed       zset    offset by due time
--   kept          zset    "<offset>:<batch>" by offset, of messages whose entry left the log before they did
--   dead          zset    offset by offset;  dead_due zset  offset by time of death
--   dead_letters  hash    offset -> { record, died ms, reason, batch }
--   group:<group> list    waiting offsets of a group, in order
--   turns         list    groups that have messages waiting which may be delivered
--   groups        hash    fifo only: group -> the offsets of its messages that are out: in flight, or delayed
--                         after a nack
--   dedup, dedup_old      hash    fifo only: deduplication key -> "<offset> <ms>"
--   attempts, attempts_old  hash  fifo only: receive attempt id -> { ms, deadline, { offset, record }... }
--   expiring      zset    offset by the end of its own time to live
--   aged          zset    offset by when its retention begins, of messages whose age the log's order does not tell
--   moving        zset    { offset, record, batch, move id or empty } by offset: on their way to another queue;
--                         those on their way to a topic by ROUTED or LETTERS and the number of their departure
--   arrived, arrived_old    hash    "<log id> <offset>" where a message came from -> its offset here
--   parked        zset    by name: groups of which nothing is delivered until they are resumed
--   parked_why    hash    group -> { parked ms, offset of the message that is to blame or -1, reason }
--   view, view_meta       the queue as a stream, when its owner wants that (lib/view.lua)
--   changes       stream  what mirrors copy of that, while one reads it (lib/history.lua)
--   copies, dead_copies   zset    offset by offset in the queue that this one is a copy of (queues/apply_copies.lua)
--   history       stream  what has happened to messages, when its owner wants that (lib/history.lua)
--   rising, rising_over, rising_over_old  hash  high-water marks of monotonic producers (lib/writer_watermarks.lua)
local K = {
  log = KEYS[1], meta = KEYS[2], idem = KEYS[3], idem_old = KEYS[4], records = KEYS[5], leases = KEYS[6],
  returned = KEYS[7], delayed = KEYS[8], kept = KEYS[9], dead = KEYS[10], dead_due = KEYS[11],
  dead_letters = KEYS[12], turns = KEYS[13], groups = KEYS[14], dedup = KEYS[15], dedup_old = KEYS[16],
  attempts = KEYS[17], attempts_old = KEYS[18], expiring = KEYS[19], moving = KEYS[20], arrived = KEYS[21],
  arrived_old = KEYS[22], aged = KEYS[23], parked = KEYS[24], parked_why = KEYS[25], view = KEYS[26],
  view_meta = KEYS[27], rising = KEYS[28], rising_over = KEYS[29], rising_over_old = KEYS[30],
  history = KEYS[31],
}

-- Set by every script that may meet a message with a group. In a fifo queue nothing of a group is delivered that
-- lies behind one of its messages that is out; in a standard queue groups take turns, so that none delays another.
local fifo = false

-- A record is { receives, received ms, arrival ms, size in bytes, renewed ms, group, receives before, failures,
-- crashes, first received ms, expires ms or 0, priority }: received ms is 0 when no receipt handle is good; retention
-- counts from renewed, or arrival. Receives are counted over all stays, so that no two deliveries share a number; those
-- before the last redrive are not shown. The order matters: a receipt handle knows the first three, and so
-- the first bytes of the record, which its size follows (settle_messages.lua). A thirteenth item is there once a
-- failure had a reason: { reason, crashes before it, details } of the last nack or reject. A
-- fourteenth is the consumer that received it last, six bytes, if that is known; the thirteenth is false then without
-- such a failure.
local RECEIVES, RECEIVED, ARRIVAL, SIZE, RENEWED, GROUP, BEFORE, FAILURES, CRASHES, FIRST, EXPIRES,
  PRIORITY, LAST_FAILURE, CONSUMER = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
local LEVEL = 562949953421312  -- 2^49: offsets of one priority lie together, and nine levels are counted exactly
-- Above every offset, so that what is on its way to a topic is not listed with moves: what routes take, and dead letters.
local ROUTED, LETTERS = LEVEL, 2 * LEVEL

local function new_record(arrival, group, size)
  return { 0, 0, arrival, size, 0, group, 0, 0, 0, 0, 0, 0 }
end

-- What lies behind the group of a record as it was sent: receives before to priority.
local NO_PAST = '\0\0\0\0\0\0'

-- Pack the record of a message of a group as it is sent: new_record, without the table.
local function packed_as_sent(arrival, size, group)
  return '\156\0\0' .. cmsgpack.pack(arrival, size, 0, group) .. NO_PAST
end

-- The whole number that MessagePack has at a place of a string, and the place behind it.
local function number_at(packed, place)
  local kind, a, b, c, d, e, f, g, h = string.byte(packed, place, place + 8)
  if kind < 128 then
    return kind, place + 1
  elseif kind == 204 then
    return a, place + 2
  elseif kind == 205 then
    return a * 256 + b, place + 3
  end
  local high = ((a * 256 + b) * 256 + c) * 256 + d
  if kind == 206 then
    return high, place + 5
  end
  return high * 4294967296 + ((e * 256 + f) * 256 + g) * 256 + h, place + 9
end

-- The group in a packed record whose size is at a place, without unpacking the rest.
local function group_at(packed, size_place)
  local _, renewed_place = number_at(packed, size_place)
  local _, place = number_at(packed, renewed_place)
  local kind, a, b = string.byte(packed, place, place + 2)
  if kind < 192 then
    return string.sub(packed, place + 1, place + kind - 160)
  elseif kind == 217 then
    return string.sub(packed, place + 2, place + 1 + a)
  end
  return string.sub(packed, place + 3, place + 2 + a * 256 + b)
end

local function record_of(offset)
  local packed = redis.call('HGET', K.records, offset)
  return packed and cmsgpack.unpack(packed)
end

local WITH_CONSUMER = 158  -- first byte of an array of fourteen items

-- The consumer in a record that is packed; nil without one.
local function consumer_in(packed)
  return string.byte(packed) == WITH_CONSUMER and string.sub(packed, -6) or nil
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

-- What left the log, by offset.
local function keep(offset, batch)
  redis.call('ZADD', K.kept, offset, offset .. ':' .. batch)
end

local function kept_batch(offset)
  local kept = redis.call('ZRANGEBYSCORE', K.kept, offset, offset)[1]
  return kept and string.sub(kept, #offset + 2)
end

local function keep_no_more(offset)
  redis.call('ZREMRANGEBYSCORE', K.kept, offset, offset)
end

-- The batch of a message: it is in the log, or was kept when the log was trimmed past it.
local function batch_at(offset, id)
  local found = redis.call('XRANGE', K.log, id, id)[1]
  if found then
    return found[2][2]
  end
  return kept_batch(offset)
end

local function batch_of(offset, record)
  return batch_at(offset, entry_id(offset, record))
end

-- Remove a message's body and record, wherever the body is.
local function forget(offset, record)
  count('bytes_gone', record[SIZE])
  local in_log = redis.call('XDEL', K.log, entry_id(offset, record)) == 1
  if not in_log then
    keep_no_more(offset)
  end
  if not in_log or record[RENEWED] > 0 then
    redis.call('ZREM', K.aged, offset)
  end
  redis.call('HDEL', K.records, offset)
  if record[EXPIRES] > 0 then
    redis.call('ZREM', K.expiring, offset)
  end
end

-- Its retention begins at `ms`, whatever its place in the log.
local function renew(offset, record, ms)
  record[RENEWED] = ms
  redis.call('ZADD', K.aged, word(ms), offset)
end

local function outlived(record, now)
  return record[EXPIRES] > 0 and record[EXPIRES] <= now
end

local function over_age(record, now, retention_ms)
  local since = record[RENEWED] > 0 and record[RENEWED] or record[ARRIVAL]
  return since + retention_ms <= now
end

local function expired(record, now, retention_ms)
  return over_age(record, now, retention_ms) or outlived(record, now)
end

-- The messages of a fifo queue's group that are out, as a list of offsets.
local function out_of(group)
  local packed = fifo and redis.call('HGET', K.groups, group)
  return packed and cmsgpack.unpack(packed) or {}
end

local function set_out(group, out)
  if #out == 0 then
    redis.call('HDEL', K.groups, group)
  else
    redis.call('HSET', K.groups, group, cmsgpack.pack(out))
  end
end

-- The first message that is out: only what lies before it may be delivered.
local function barrier_of(out)
  local barrier = math.huge
  for _, offset in ipairs(out) do
    barrier = math.min(barrier, tonumber(offset))
  end
  return barrier
end

local some_are_parked  -- asked when the first group is met: most queues have none

local function any_are_parked()
  if some_are_parked == nil then
    some_are_parked = redis.call('EXISTS', K.parked) == 1
  end
  return some_are_parked
end

local function is_parked(group)
  return any_are_parked() and redis.call('ZSCORE', K.parked, group) and true
end

-- Whether a message that waits does so with its parked group.
local function is_held_back(offset)
  local record = any_are_parked() and record_of(offset)
  return record and record[GROUP] ~= '' and is_parked(record[GROUP])
end

local function may_deliver(group)
  local head = redis.call('LINDEX', waiting_of(group), 0)
  return head and tonumber(head) < barrier_of(out_of(group)) and not is_parked(group)
end

-- Do something to a group's waiting messages or to those that are out, and keep its turn, or the count of what is
-- parked, right.
local function rearrange(group, change)
  if is_parked(group) then
    local before = redis.call('LLEN', waiting_of(group))
    change()
    count('parked', redis.call('LLEN', waiting_of(group)) - before)
    return
  end
  local before = may_deliver(group)
  change()
  local after = may_deliver(group)
  if after and not before then
    redis.call('RPUSH', K.turns, group)
  elseif before and not after then
    redis.call('LREM', K.turns, 1, group)
  end
end

local function without(out, offsets)
  local gone, left = {}, {}
  for _, offset in ipairs(offsets) do
    gone[offset] = true
  end
  for _, offset in ipairs(out) do
    if not gone[offset] then
      table.insert(left, offset)
    end
  end
  return left
end

-- These messages of the group are not out any more: settled, or dropped. Its waiting ones stay as they are.
local function unlock(group, offsets)
  if not fifo then
    return
  end
  local out, head = out_of(group), tonumber(redis.call('LINDEX', waiting_of(group), 0) or nil)
  local left = without(out, offsets)
  set_out(group, left)
  if head and head >= barrier_of(out) and head < barrier_of(left) and not is_parked(group) then
    redis.call('RPUSH', K.turns, group)
  end
end

-- Behind all that waits of the group, and behind all of it that is out. Gives whether the group's turn comes with them: the
-- caller adds it to `turns`.
local function join_group(group, offsets)
  local are_first = redis.call('RPUSH', waiting_of(group), unpack(offsets)) == #offsets
  if is_parked(group) then
    count('parked', #offsets)
    return false
  end
  return are_first and not (fifo and redis.call('HEXISTS', K.groups, group) == 1)
end

-- Put an offset back among its group's waiting ones, in order. What was delivered before lies before
-- what never was, so only offsets that returned earlier can lie in front; what was delayed comes last.
local function queue_in_order(group, offset)
  local waiting = waiting_of(group)
  local last = redis.call('LINDEX', waiting, -1)
  if not last or tonumber(last) < tonumber(offset) then
    redis.call('RPUSH', waiting, offset)
    return
  end
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

-- Into ready, from wherever it was.
local function make_ready(offset, record)
  local group = record[GROUP]
  if group == '' then
    redis.call('ZADD', K.returned, word(tonumber(offset) - record[PRIORITY] * LEVEL), offset)
    return
  end
  rearrange(group, function()
    queue_in_order(group, offset)
    if fifo then
      set_out(group, without(out_of(group), { offset }))
    end
  end)
end

-- In flight -> dead-lettered (Q9: the one copy moves from the log to dead_letters). `cause` is counted: exhausted,
-- rejected or full.
local function bury(offset, record, reason, cause, now)
  count('dead_' .. cause, 1)
  local batch = batch_of(offset, record)
  forget(offset, record)
  record[RECEIVED] = 0
  redis.call('HSET', K.dead_letters, offset, cmsgpack.pack({ record, now, reason, batch }))
  redis.call('ZADD', K.dead, offset, offset)
  redis.call('ZADD', K.dead_due, now, offset)
  note(offset, 'dead_lettered', 0, 0, reason)
  if record[GROUP] ~= '' then
    unlock(record[GROUP], { offset })
  end
end

-- A consumer's verdict that an attempt failed: the last such reason stays with the message.
local function keep_failure(record, reason, details)
  if reason ~= '' or details ~= '' or record[LAST_FAILURE] then
    record[LAST_FAILURE] = { reason, record[CRASHES], details }
  end
end

-- Reason and details of the last nack or reject, empty without them.
local function last_failure(record)
  local last = record[LAST_FAILURE] or { '', 0, '' }
  return last[1], last[3]
end

local function crash_reason(record)
  return 'visibility timeout passed ' .. word(record[CRASHES]) .. ' times'
end

-- Reason of a message that was received too often: its last failure, or that none was reported.
local function departure_reason(record)
  local last = record[LAST_FAILURE]
  if last and last[1] ~= '' and last[2] == record[CRASHES] then
    return last[1]
  elseif record[CRASHES] > 0 then
    return crash_reason(record)
  end
  return 'received ' .. word(record[RECEIVES] - record[BEFORE]) .. ' times'
end

-- Ready, and taken out of where it waited -> moving: on its way to another queue, until that has it. `place`: its score,
-- the offset without one. Gives its batch.
local function depart(offset, record, move_id, place)
  local batch = batch_of(offset, record)
  forget(offset, record)
  redis.call('ZADD', K.moving, place or offset, cmsgpack.pack({ offset, record, batch, move_id }))
  note(offset, 'departed', 0, 0, move_id ~= '' and move_id or departure_reason(record))
  return batch
end

-- The position of the next message on its way to a topic. The numbers of departures rise, in a sequence that has a name for
-- each life of this state: `departures`.
local function next_position(base, now)
  local number = redis.call('HINCRBY', K.meta, 'departed', 1)
  if number == 1 then
    redis.call('HSET', K.meta, 'departures', word(now))
  end
  return base + number
end

-- Nothing of the group is delivered until it is resumed: neither what waits of it nor what comes. Gives whether it was
-- not parked before.
local function park(group, offset, reason, now)
  if is_parked(group) then
    return false
  end
  if may_deliver(group) then
    redis.call('LREM', K.turns, 1, group)
  end
  redis.call('ZADD', K.parked, 0, group)
  redis.call('HSET', K.parked_why, group, cmsgpack.pack({ now, tonumber(offset), reason }))
  count('parked', redis.call('LLEN', waiting_of(group)))
  some_are_parked = true
  return true
end

-- Attempts at most: 0 is no limit; when it is negative, the group of what has failed as often is parked.
local function exhausted(record, attempts_max)
  return attempts_max ~= 0 and record[FAILURES] + record[CRASHES] >= math.abs(attempts_max)
end

-- Its own time is over, and it is in no list: it expires here.
local function drop(offset, record)
  forget(offset, record)
  count('expired', 1)
  note(offset, 'expired')
  if record[GROUP] ~= '' then
    unlock(record[GROUP], { offset })
  end
end

-- No more attempts, and it is in no list: the message is dead, or waits in its place with its group parked; there is
-- nothing to wait for when its own time is over.
local function give_up(offset, record, reason, cause, attempts_max, now)
  if attempts_max >= 0 then
    bury(offset, record, reason, cause, now)
    return
  end
  record[RECEIVED] = 0
  save(offset, record)
  note(offset, 'parked', 0, 0, reason)
  park(record[GROUP], offset, reason, now)
  if outlived(record, now) then
    drop(offset, record)
  else
    make_ready(offset, record)
  end
end

-- A lease ran out without a verdict: a crash.
local function end_lease(offset, attempts_max, now)
  local record = record_of(offset)
  redis.call('ZREM', K.leases, offset)
  record[CRASHES] = record[CRASHES] + 1
  count('failed', 1)
  note(offset, 'lease_ended', 0, record[CRASHES])
  if outlived(record, now) then
    drop(offset, record)
  elseif exhausted(record, attempts_max) then
    give_up(offset, record, crash_reason(record), 'exhausted', attempts_max, now)
  else
    save(offset, record)
    make_ready(offset, record)
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
    local record = record_of(offset)
    redis.call('ZREM', K.delayed, offset)
    if outlived(record, now) then
      drop(offset, record)
    else
      note(offset, 'due')
      make_ready(offset, record)
    end
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
