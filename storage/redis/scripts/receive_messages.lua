-- Hand out ready messages and hide them until their visibility timeout passes.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 visibility timeout ms  3 messages at most  4 bytes at most (one message is
--          always given)  5 attempts at most, 0 for no limit  6 retention ms  7 due moves at most
--          8 entries to pass by at most  9 '1': ask for a wake-up when nothing is there  10 '1' for fifo
-- Returns  { OK, now_ms, next due ms or -1, message... }, or what lib/answers.lua says. A message is
--          { entry id, batch } when this is its first delivery, else { offset, arrival ms, batch, receives,
--          failures, crashes, first received ms, receives over all stays }. A next due that is not after
--          now asks to be called again: more was due than one call moves.
-- Keeps    Q1 one state; Q3 receives never fall; Q4 nothing acknowledged returns; Q6 order in a group, and
--          nothing overtakes a message in flight; Q8 never early; Q9 one copy after the last attempt
-- @include numbers
-- @include time
-- @include answers
-- @include queue
local held = redis.call('HMGET', K.meta, 'next', 'cursor', 'last_ms', 'deleted')
if held[4] then
  return { DELETED }
elseif not held[1] then
  return { UNKNOWN_LOG }
end
local now = now_at(ARGV[1], held[3])
local visible_at = now + tonumber(ARGV[2])
local messages_max, bytes_max = tonumber(ARGV[3]), tonumber(ARGV[4])
local attempts_max, retention_ms = tonumber(ARGV[5]), tonumber(ARGV[6])
local moves_max, passes_left = tonumber(ARGV[7]), tonumber(ARGV[8])
local answer, bytes, lapsed = { OK, now, -1 }, 0, 0
local leased, recorded = {}, {}
local deadline = word(visible_at)
local more_is_due = move_due(attempts_max, now, moves_max) >= moves_max

local function wants_more()
  return #answer - 3 < messages_max and (bytes < bytes_max or #answer == 3)
end

local function hand_out(offset, record, batch)
  record[RECEIVES] = record[RECEIVES] + 1
  record[FIRST] = record[FIRST] > 0 and record[FIRST] or now
  record[RECEIVED] = now
  local out = #leased
  leased[out + 1], leased[out + 2] = deadline, offset
  recorded[out + 1], recorded[out + 2] = offset, cmsgpack.pack(record)
  bytes = bytes + #batch
  table.insert(answer, { tonumber(offset), record[ARRIVAL], batch, record[RECEIVES] - record[BEFORE], record[FAILURES],
    record[CRASHES], record[FIRST], record[RECEIVES] })
end

-- The first delivery of a message that has no lease state yet, which is most of them: its record differs
-- from the next one's in the arrival alone. 0x99: nine items; 1 receive; 0xa0: no group.
local before_arrival = '\153\1' .. cmsgpack.pack(now)
local after_arrival = '\0\160\0\0\0' .. cmsgpack.pack(now)

local function hand_out_new(id, offset, arrival, batch)
  local out = #leased
  leased[out + 1], leased[out + 2] = deadline, offset
  recorded[out + 1], recorded[out + 2] = offset, before_arrival .. cmsgpack.pack(arrival) .. after_arrival
  bytes = bytes + #batch
  answer[#answer + 1] = { id, batch }
end

-- Gives true when the message went out, false when its time was over.
local function take(offset, record)
  if expired(record, now, retention_ms) then
    forget(offset, record)
    lapsed = lapsed + 1
    return false
  end
  hand_out(offset, record, batch_of(offset, record))
  return true
end

local function take_returned()
  while wants_more() and passes_left > 0 do
    local offset = redis.call('ZPOPMIN', K.returned)[1]
    if not offset then
      return
    end
    if not take(offset, record_of(offset)) then
      passes_left = passes_left - 1
    end
  end
end

local function take_new()
  local cursor, next_offset = held[2], tonumber(held[1])
  local oldest_kept = now - retention_ms
  while tonumber(cursor) < next_offset and wants_more() and passes_left > 0 do
    local page = math.min(messages_max - (#answer - 3), passes_left, 100)
    local found = redis.call('XRANGE', K.log, cursor, '+', 'COUNT', page)
    local last
    for _, entry in ipairs(found) do
      if not wants_more() then
        break
      end
      local id, fields = entry[1], entry[2]
      local dash = string.find(id, '-', 1, true)
      local offset, arrival = string.sub(id, 1, dash - 1), tonumber(string.sub(id, dash + 1))
      if fields[3] == 'x' then
        passes_left = passes_left - 1
      elseif arrival <= oldest_kept then
        forget(offset, new_record(arrival, ''))
        lapsed = lapsed + 1
        passes_left = passes_left - 1
      else
        hand_out_new(id, offset, arrival, fields[2])
      end
      last = offset
    end
    cursor = last and word(tonumber(last) + 1) or held[1]
  end
  if cursor ~= held[2] then
    redis.call('HSET', K.meta, 'cursor', cursor)
  end
  more_is_due = more_is_due or (passes_left <= 0 and tonumber(cursor) < next_offset)
end

local function take_of_group(group)
  local waiting, locked = waiting_of(group), 0
  while wants_more() and passes_left > 0 do
    local offset = redis.call('LPOP', waiting)
    if not offset then
      break
    end
    if take(offset, record_of(offset)) then
      locked = locked + 1
    else
      passes_left = passes_left - 1
    end
  end
  if locked > 0 then
    redis.call('HSET', K.groups, group, locked)
  elseif redis.call('EXISTS', waiting) == 1 then
    redis.call('RPUSH', K.turns, group)
  end
end

if ARGV[10] == '1' then
  while wants_more() and passes_left > 0 do
    local group = redis.call('LPOP', K.turns)
    if not group then
      break
    end
    take_of_group(group)
  end
else
  take_returned()
  take_new()
end

if #leased > 0 then
  redis.call('ZADD', K.leases, unpack(leased))
  redis.call('HSET', K.records, unpack(recorded))
end
count('receives', #answer - 3)
count('expired', lapsed)
if #answer == 3 then
  answer[3] = (more_is_due or passes_left <= 0) and now or next_due()
  if ARGV[9] == '1' then
    redis.call('HSET', K.meta, 'waiting', '1')
  end
end
return answer
