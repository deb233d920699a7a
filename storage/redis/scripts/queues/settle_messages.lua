-- Take consumers' verdicts on deliveries.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 attempts at most, as lib/queue.lua has it  3 the longest a delivery may last, ms
--          4 '1' for fifo  5 '1': as SQS has it: any delivery of a standard queue's message will do, also one
--          that is over, and none that is over of a fifo queue's; an extension that is too long is refused
--          rather than shortened
--          6 the queue's back-off: empty, or MessagePack as lib/backoff.lua has it
--          7 MessagePack of the acknowledgements, three items for each: the offset, in words; the first items of
--          the record that it must have, without the head of their array; the entry id
--          8.. the other verdicts, each MessagePack { action, offset, arrival ms, delivery, received ms, delay or
--          visibility timeout ms, reason, details or nil }; a nack's delay is -1 where its consumer
--          gave none
-- Returns  { OK, now_ms, result of each acknowledgement..., { result, visible at ms or -1 } of each other
--          verdict... }, or what lib/status.lua says
-- Keeps    Q1 one state; Q2 a handle names one delivery; Q3 a release adds no failure; Q4 nothing
--          acknowledged returns; Q6 a group stays locked while one of its messages is in flight; Q9, Q10
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include backoff
local DONE, HANDLE_EXPIRED, GONE, TOO_LONG = 0, 1, 2, 3
local ACK_ITEMS, FIRST_OTHER = 3, 8

local held = redis.call('HMGET', K.meta, 'next', 'last_ms', 'deleted', 'history', 'changes')
local absent = absence(held[3], held[1])
if absent then
  return absent
end
local now = now_at(ARGV[1], held[2])
local attempts_max, delivery_ms_max = tonumber(ARGV[2]), tonumber(ARGV[3])
local acknowledged, stirred = 0, false
fifo = ARGV[4] == '1'
noted_max, change = held[4], held[5]
local as_sqs = ARGV[5] == '1'
local any_delivery = as_sqs and not fifo

-- The message, when this handle is its latest; else nil and what to answer.
local function delivered(action, offset, receives, received)
  local record = record_of(offset)
  if not record then
    return nil, action == 'ack' and DONE or GONE
  end
  if not any_delivery and (record[RECEIVES] ~= receives or record[RECEIVED] ~= received) then
    return nil, HANDLE_EXPIRED
  end
  return record
end

-- The lease's deadline while it runs. One that has run out is ended first, so that a verdict meets the
-- message in the state it has.
local function running_lease(offset)
  local deadline = redis.call('ZSCORE', K.leases, offset)
  if deadline and tonumber(deadline) <= now then
    end_lease(offset, attempts_max, now)
    stirred = true
    return nil
  end
  return deadline
end

-- A late verdict, before the next delivery: the message waits among the returned ones, or for its delay.
local function withdraw(offset, record)
  if any_delivery and redis.call('ZREM', K.delayed, offset) == 1 then
    return true
  elseif record[GROUP] == '' then
    return redis.call('ZREM', K.returned, offset) == 1
  end
  local found
  rearrange(record[GROUP], function()
    found = redis.call('LREM', waiting_of(record[GROUP]), 1, offset) == 1
  end)
  return found
end

local function acknowledge(offset, record, deadline)
  if deadline then
    redis.call('ZREM', K.leases, offset)
  elseif (as_sqs and fifo) or not withdraw(offset, record) then
    return HANDLE_EXPIRED
  end
  forget(offset, record)
  note(offset, 'acknowledged')
  acknowledged = acknowledged + 1
  if deadline and record[GROUP] ~= '' then
    unlock(record[GROUP], { offset })
    stirred = true
  end
  return DONE
end

local function send_back(offset, record, delay_ms)
  redis.call('ZREM', K.leases, offset)
  if outlived(record, now) then
    drop(offset, record)
    return DONE, now
  end
  record[RECEIVED] = 0
  save(offset, record)
  stirred = true
  if delay_ms > 0 then
    redis.call('ZADD', K.delayed, word(now + delay_ms), offset)
    return DONE, now + delay_ms
  end
  make_ready(offset, record)
  return DONE, now
end

local function fail(offset, record, delay_ms, reason, details, fatal)
  record[FAILURES] = record[FAILURES] + 1
  count('failed', 1)
  keep_failure(record, reason, details)
  if fatal or exhausted(record, attempts_max) then
    redis.call('ZREM', K.leases, offset)
    note(offset, fatal and 'rejected' or 'nacked', 0, record[FAILURES], reason, details)
    give_up(offset, record, reason, fatal and 'rejected' or 'exhausted', attempts_max, now)
    stirred = true
    return DONE
  end
  if delay_ms < 0 then
    delay_ms = ARGV[6] ~= '' and backoff_ms(cmsgpack.unpack(ARGV[6]), offset, record[FAILURES]) or 0
  end
  note(offset, 'nacked', delay_ms > 0 and now + delay_ms, record[FAILURES], reason, details)
  return send_back(offset, record, delay_ms)
end

local function extend(offset, record, timeout_ms, deadline)
  local last = (record[RECEIVED] > 0 and record[RECEIVED] or now) + delivery_ms_max
  if as_sqs and now + timeout_ms > last then
    return TOO_LONG
  elseif not deadline and not withdraw(offset, record) then
    return HANDLE_EXPIRED
  elseif as_sqs and timeout_ms == 0 then
    note(offset, 'released')
    return send_back(offset, record, 0)
  end
  local visible_at = math.min(now + timeout_ms, last)
  redis.call('ZADD', K.leases, word(visible_at), offset)
  note(offset, 'extended', visible_at)
  stirred = true
  return DONE, visible_at
end

local function settle(action, offset, receives, received, time_ms, reason, details)
  local record, refused = delivered(action, offset, receives, received)
  if not record then
    return refused
  end
  local deadline = running_lease(offset)
  record = deadline and record or record_of(offset)  -- the end of its lease has changed it, or ended it
  if not record then
    return HANDLE_EXPIRED
  elseif action == 'ack' then
    return acknowledge(offset, record, deadline)
  elseif not deadline and not (any_delivery and action == 'extend') then
    return HANDLE_EXPIRED
  elseif action == 'nack' then
    return fail(offset, record, time_ms, reason, details or '', false)
  elseif action == 'reject' then
    return fail(offset, record, 0, reason, details or '', true)
  elseif action == 'release' then
    note(offset, 'released')
    return send_back(offset, record, 0)
  end
  return extend(offset, record, time_ms, deadline)
end

local function settle_packed(packed)
  local action, offset, _, receives, received, time_ms, reason, details = unpack(cmsgpack.unpack(packed))
  return settle(action, word(offset), receives, received, time_ms, reason, details)
end

-- An acknowledgement that is not plain. The record's first items name the delivery: as an array of three they
-- can be read.
local function acknowledge_apart(offset, items)
  local known = cmsgpack.unpack('\147' .. items)
  return (settle('ack', offset, known[1], known[2], 0, ''))
end

-- Most calls acknowledge running leases: those leave together, in one command for each structure, and are
-- told by the first bytes of their records. Adds a result for each to `answer`.
local function acknowledge_together(answer, acks)
  local offsets, results, done, entries, taken, freed = {}, {}, {}, {}, {}, {}
  local bytes = 0
  for at = 1, #acks, ACK_ITEMS do
    offsets[#offsets + 1] = acks[at]
  end
  local records = redis.call('HMGET', K.records, unpack(offsets))
  local deadlines = redis.call('ZMSCORE', K.leases, unpack(offsets))
  for nth, offset in ipairs(offsets) do
    local record, deadline, expected = records[nth], deadlines[nth], acks[nth * ACK_ITEMS - 1]
    if record and not taken[offset] and string.sub(record, 2, #expected + 1) == expected
      and deadline and tonumber(deadline) > now then
      taken[offset], results[nth] = true, DONE
      done[#done + 1], entries[#entries + 1] = offset, acks[nth * ACK_ITEMS]
      bytes = bytes + number_at(record, #expected + 2)  -- its size follows what the handle knows
      if noted_max or change then
        note(offset, 'acknowledged')
      end
      if fifo then
        local group = group_at(record, #expected + 2)
        freed[group] = freed[group] or {}
        table.insert(freed[group], offset)
      end
    end
  end
  if #done > 0 then
    if redis.call('XDEL', K.log, unpack(entries)) < #done then
      for _, offset in ipairs(done) do
        keep_no_more(offset)
      end
    end
    redis.call('ZREM', K.leases, unpack(done))
    redis.call('HDEL', K.records, unpack(done))
    for _, key in ipairs({ K.aged, K.expiring }) do
      if redis.call('EXISTS', key) == 1 then
        redis.call('ZREM', key, unpack(done))
      end
    end
    count('bytes_gone', bytes)
    acknowledged = #done
  end
  for group, gone in pairs(freed) do
    unlock(group, gone)
    stirred = true
  end
  for nth, offset in ipairs(offsets) do
    answer[#answer + 1] = results[nth] or acknowledge_apart(offset, acks[nth * ACK_ITEMS - 1])
  end
end

local answer, acks = { OK, now }, cmsgpack.unpack(ARGV[7])
if #acks > 0 then
  acknowledge_together(answer, acks)
end
for index = FIRST_OTHER, #ARGV do
  local result, visible_at = settle_packed(ARGV[index])
  answer[#answer + 1] = { result, visible_at or -1 }
end
count('acknowledged', acknowledged)
if stirred then
  wake(K.meta)
end
return answer
