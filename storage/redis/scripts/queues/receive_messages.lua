-- Hand out ready messages and hide them until their visibility timeout passes, to several callers in turn: each
-- gets what it would have got by a call of its own after those before it.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 attempts at most, as lib/queue.lua has it  3 retention ms  4 due moves at most
--          5 entries to pass by at most  6 '1' for fifo  7 receives at most before a message leaves for another
--          queue, 0 for no limit  8 in flight at most  9 how long an attempt is remembered, ms  10 of a standard
--          queue: how many messages of a group are delivered in its turn, as MessagePack { { group, or the start of
--          one and '*', messages }... } of which the first that fits counts, or empty for one message of each
--          11 bytes handed out after which no more callers are served  12 '1': what leaves goes to a topic
--          then seven for each caller: visibility
--          timeout ms, messages at most (0: only tell whether there are some), bytes at most (one message is always given), '1': ask for a wake-up when
--          nothing is there, attempt id or empty, '1': refuse the id of an attempt whose messages were settled or
--          extended before its visibility timeout passed, consumer (six bytes) or empty
-- Returns  { OK, now_ms, answer of each caller... }, or what lib/status.lua says. An answer is { next due ms, -1
--          for never, -2 when as many are in flight as may be, -3 when this caller was not served and is to ask
--          again, -4 when its attempt id is refused; messages that left; message... }. A message is { entry id, batch } when this is its first
--          delivery, else { offset, arrival ms, batch, receives, failures, crashes, first received ms, receives
--          over all stays, received ms }. A next due that is not after now asks to be called again: more was due
--          than one call moves.
-- Keeps    Q1 one state; Q3 receives never fall; Q4 nothing acknowledged returns; Q6 order in a group, and
--          nothing overtakes a message in flight; Q8 never early; Q9 one copy after the last attempt
-- @include numbers
-- @include time
-- @include status
-- @include two_generations
-- @include history
-- @include queue
-- @include use
local FULL, NOT_SERVED, REFUSED, HEAD, ATTEMPTS_KEPT = -2, -3, -4, 2, 100000
local FIRST_CALLER, CALLER_ARGS = 13, 7

local held = redis.call('HMGET', K.meta, 'next', 'cursor', 'last_ms', 'deleted', 'receives', 'history',
  'fence', 'used')
local absent = absence(held[4], held[1])
if absent then
  return absent
end
fifo = ARGV[6] == '1'
noted_max = held[6]
local now = now_at(ARGV[1], held[3])
note_use(held[8], now)
local attempts_max, retention_ms = tonumber(ARGV[2]), tonumber(ARGV[3])
local moves_max, passes_left = tonumber(ARGV[4]), tonumber(ARGV[5])
local receives_max, attempt_ms = tonumber(ARGV[7]), tonumber(ARGV[9])
local lapsed, received, bytes_left = 0, 0, tonumber(ARGV[11])
local more_is_due = move_due(attempts_max, now, moves_max) >= moves_max
local room = tonumber(ARGV[8]) - redis.call('ZCARD', K.leases)
local cursor = held[2]

-- Of the caller that is being served.
local visible_at, deadline, messages_max, bytes_max, answer, bytes, left, consumer
-- Of all: what is to be written of those that went out.
local leased, recorded = {}, {}

local function wants_more()
  return #answer - HEAD < messages_max and (bytes < bytes_max or #answer == HEAD)
end

local function show(offset, record, batch)
  bytes = bytes + #batch
  if record[RECEIVES] == 1 and record[FAILURES] + record[CRASHES] == 0 and record[RECEIVED] == now then
    answer[#answer + 1] = { entry_id(offset, record), batch }
    return
  end
  answer[#answer + 1] = { tonumber(offset), record[ARRIVAL], batch, record[RECEIVES] - record[BEFORE], record[FAILURES],
    record[CRASHES], record[FIRST], record[RECEIVES], record[RECEIVED] }
end

-- What is kept of a delivery that was shown: the message's offset, and how often it was received.
local function known_of(row)
  if row[3] then
    return word(row[1]), row[8]
  end
  return string.match(row[1], '^%d+'), 1
end

local function hand_out(offset, record, batch)
  record[RECEIVES] = record[RECEIVES] + 1
  record[FIRST] = record[FIRST] > 0 and record[FIRST] or now
  record[RECEIVED] = now
  if consumer ~= '' or record[CONSUMER] then
    record[LAST_FAILURE], record[CONSUMER] = record[LAST_FAILURE] or false, consumer ~= '' and consumer or nil
  end
  local out = #leased
  leased[out + 1], leased[out + 2] = deadline, offset
  recorded[out + 1], recorded[out + 2] = offset, cmsgpack.pack(record)
  if noted_max then
    note(offset, 'delivered', visible_at, record[RECEIVES] - record[BEFORE], consumer)
  end
  show(offset, record, batch)
end

-- The first delivery of a message that has no lease state yet, which is most of them: its record differs
-- from the next one's in the arrival, its size and its own time alone. 0x9c: twelve items; 0x9e: fourteen, the last of
-- which are false and the consumer, a string of six bytes; 1 receive; 0xa0: no group.
local before_arrival, after_expiry
local after_size = '\0\160\0\0\0' .. cmsgpack.pack(now)
local lately, lately_size, lately_packed  -- what came at once is often of one size, too

local function deliver_to(its_consumer)
  if consumer ~= its_consumer then
    consumer, lately = its_consumer, nil
    local is_known = consumer ~= ''
    before_arrival = (is_known and '\158\1' or '\156\1') .. cmsgpack.pack(now)
    after_expiry = is_known and '\0\194\166' .. consumer or '\0'
  end
end

local function hand_out_new(id, offset, arrival, batch, expires)
  local out = #leased
  if arrival ~= lately or #batch ~= lately_size then
    lately, lately_size = arrival, #batch
    lately_packed = before_arrival .. cmsgpack.pack(arrival, #batch) .. after_size
  end
  leased[out + 1], leased[out + 2] = deadline, offset
  recorded[out + 1], recorded[out + 2] = offset, lately_packed .. (expires and cmsgpack.pack(expires) or '\0') .. after_expiry
  bytes = bytes + #batch
  if noted_max then
    note(offset, 'delivered', visible_at, 1, consumer)
  end
  answer[#answer + 1] = { id, batch }
end

-- The first messages of the groups whose turns come next, read together: offsets by group, records and batches by
-- offset. Each is popped already.
local heads, records_ahead, batches_ahead = {}, {}, {}

-- The same of a message of a group: its record is as it was sent, so what changes is told without unpacking it. Gives
-- false when it is not, or when its time is over.
local packed_now = cmsgpack.pack(now)

local function hand_out_as_sent(offset, packed, group)
  if string.sub(packed, 1, 4) ~= '\156\0\0\207' then
    return false
  end
  local arrival, size_place = number_at(packed, 4)
  local _, renewed_place = number_at(packed, size_place)
  if arrival + retention_ms <= now
    or string.sub(packed, renewed_place) ~= '\0' .. cmsgpack.pack(group) .. NO_PAST then
    return false
  end
  local id, out = offset .. '-' .. word(arrival), #leased
  local batch = batches_ahead[offset] or batch_at(offset, id)
  leased[out + 1], leased[out + 2] = deadline, offset
  recorded[out + 1] = offset
  recorded[out + 2] = before_arrival .. string.sub(packed, 4, -4) .. packed_now .. '\0' .. after_expiry
  bytes = bytes + #batch
  if noted_max then
    note(offset, 'delivered', visible_at, 1, consumer)
  end
  answer[#answer + 1] = { id, batch }
  return true
end

-- Gives true when the message went out, false when its time was over or it left for another queue.
local function take(offset, record)
  if expired(record, now, retention_ms) then
    forget(offset, record)
    note(offset, 'expired')
    lapsed = lapsed + 1
    return false
  elseif receives_max > 0 and record[RECEIVES] - record[BEFORE] >= receives_max then
    depart(offset, record, '', ARGV[12] == '1' and word(next_position(LETTERS, now)))
    count('dead_exhausted', 1)
    left = left + 1
    return false
  end
  hand_out(offset, record, batches_ahead[offset] or batch_of(offset, record))
  return true
end

local function take_of(group, offset, packed)
  return hand_out_as_sent(offset, packed, group) or take(offset, cmsgpack.unpack(packed))
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

-- Entries that have lease state are passed by: the more of them lie in a row, the more are read at once.
local walk_left, run = passes_left, 1

local function take_new()
  local next_offset, oldest_kept = tonumber(held[1]), now - retention_ms
  while tonumber(cursor) < next_offset and wants_more() and walk_left > 0 do
    local page = math.min(math.max(messages_max - (#answer - HEAD), run), walk_left, 100)
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
        walk_left, run = walk_left - 1, run + 1
      else
        run = 1
        local expires = fields[3] == 't' and tonumber(fields[4])
        if arrival <= oldest_kept or (expires and expires <= now) then
          local record = new_record(arrival, '', #fields[2])
          record[EXPIRES] = expires or 0
          forget(offset, record)
          note(offset, 'expired')
          lapsed = lapsed + 1
          walk_left = walk_left - 1
        else
          hand_out_new(id, offset, arrival, fields[2], expires)
        end
      end
      last = offset
    end
    cursor = last and word(tonumber(last) + 1) or held[1]
  end
  more_is_due = more_is_due or (walk_left <= 0 and tonumber(cursor) < next_offset)
end

-- Messages of a group that were popped, from the nth on, wait in their places again.
local function unpop(waiting, offsets, nth)
  local left = {}
  for index = #offsets, nth, -1 do
    left[#left + 1] = offsets[index]
  end
  redis.call('LPUSH', waiting, unpack(left))
end

-- As many as may be, in order, and none that lies behind one that is out.
local function take_of_group(group)
  local waiting, out, taken = waiting_of(group), out_of(group), 0
  local barrier = barrier_of(out)
  while wants_more() and passes_left > 0 do
    local most = math.min(messages_max - (#answer - HEAD), passes_left, 100)
    local offsets = redis.call('LPOP', waiting, most)
    if not offsets then
      break
    end
    local records, nth = redis.call('HMGET', K.records, unpack(offsets)), 1
    while nth <= #offsets and tonumber(offsets[nth]) < barrier and wants_more() do
      if take_of(group, offsets[nth], records[nth]) then
        taken = taken + 1
        table.insert(out, offsets[nth])
      else
        passes_left = passes_left - 1
      end
      nth = nth + 1
    end
    if nth <= #offsets then
      unpop(waiting, offsets, nth)
      break
    elseif #offsets < most then
      break
    end
  end
  if taken > 0 then
    set_out(group, out)
  elseif may_deliver(group) then
    redis.call('RPUSH', K.turns, group)
  end
end

local function take_locking()
  while wants_more() and passes_left > 0 do
    local group = redis.call('LPOP', K.turns)
    if not group then
      break
    end
    take_of_group(group)
  end
end

local weights = ARGV[10] ~= '' and cmsgpack.unpack(ARGV[10]) or {}

local function weight_of(group)
  for _, pair in ipairs(weights) do
    local start = string.match(pair[1], '^(.*)%*$')
    if pair[1] == group or (start and string.sub(group, 1, #start) == start) then
      return pair[2]
    end
  end
  return 1
end

-- A turn that was cut short goes on in the next call: whose it is, and how much of it is left.
local cut_short = weights[1] and redis.call('HMGET', K.meta, 'turn_of', 'turn_left') or {}

local function share_of(group)
  if not weights[1] then
    return 1
  end
  if cut_short[1] ~= group then
    return weight_of(group)
  end
  local left = tonumber(cut_short[2])
  cut_short = {}
  redis.call('HDEL', K.meta, 'turn_of', 'turn_left')
  return left
end

-- Groups that take turns often have their first messages near one another in the log: those are one range of it.
local function read_ahead(groups)
  local offsets, first, last = {}, math.huge, 0
  for _, group in ipairs(groups) do
    local offset = not heads[group] and redis.call('LPOP', waiting_of(group))
    if offset then
      heads[group] = offset
      offsets[#offsets + 1] = offset
      first, last = math.min(first, tonumber(offset)), math.max(last, tonumber(offset))
    end
  end
  if #offsets < 2 then
    return
  end
  for nth, record in ipairs(redis.call('HMGET', K.records, unpack(offsets))) do
    records_ahead[offsets[nth]] = record
  end
  if last - first < 2 * #offsets then
    for _, entry in ipairs(redis.call('XRANGE', K.log, word(first), word(last))) do
      batches_ahead[string.match(entry[1], '^%d+')] = entry[2][2]
    end
  end
end

local function next_of(group)
  local offset = heads[group] or redis.call('LPOP', waiting_of(group))
  heads[group] = nil
  return offset, offset and (records_ahead[offset] or redis.call('HGET', K.records, offset))
end

local function return_head(group)
  if heads[group] then
    redis.call('LPUSH', waiting_of(group), heads[group])
    heads[group] = nil
  end
end

-- Up to a group's share of messages. Gives what is left of the share, and whether more of the group waits.
local function take_turn(group)
  local share = share_of(group)
  while share > 0 and wants_more() and passes_left > 0 do
    local offset, packed = next_of(group)
    if not offset then
      return 0, false
    elseif take_of(group, offset, packed) then
      share = share - 1
    else
      passes_left = passes_left - 1
    end
  end
  return_head(group)
  return share, redis.call('EXISTS', waiting_of(group)) == 1
end

-- The groups from the nth on keep their places at the head, and their first messages theirs.
local function put_back(groups, nth)
  for left = #groups, nth, -1 do
    redis.call('LPUSH', K.turns, groups[left])
    return_head(groups[left])
  end
end

-- Each group in turn, as many at once as messages are wanted.
local function take_in_turns()
  while wants_more() and passes_left > 0 do
    local groups = redis.call('LPOP', K.turns, math.min(messages_max - (#answer - HEAD), 100))
    if not groups then
      return
    end
    read_ahead(groups)
    local again = {}
    for nth, group in ipairs(groups) do
      if not (wants_more() and passes_left > 0) then
        put_back(groups, nth)
        break
      end
      local left, more = take_turn(group)
      if more and left > 0 and weights[1] then
        redis.call('HSET', K.meta, 'turn_of', group, 'turn_left', left)
        put_back(groups, nth)
        break
      elseif more then
        again[#again + 1] = group
      end
    end
    if #again > 0 then
      redis.call('RPUSH', K.turns, unpack(again))
    end
  end
end

local function take_ungrouped()
  take_returned()
  take_new()
end

-- Messages of groups and those without one have half of the deliveries each, when there are enough; with an
-- odd number they take the odd one in turn.
local function take_fairly()
  if redis.call('EXISTS', K.turns) == 0 then
    take_ungrouped()
    return
  end
  local wanted = messages_max
  messages_max = math.floor((wanted + (tonumber(held[5] or '0') + received) % 2) / 2)
  take_ungrouped()
  messages_max = wanted
  take_in_turns()
  take_ungrouped()
end

-- What this attempt was answered before: { when, visible at, offset and receives of each message... }, or nothing.
local function answered_before(attempt_id)
  local packed = fifo and attempt_id ~= '' and recall(K.attempts, K.attempts_old, attempt_id)
  local known = packed and cmsgpack.unpack(packed)
  return known and now - known[1] < attempt_ms and known
end

-- The same messages again, hidden from now on, while all of them are still as they were. Gives whether it was so.
local function answer_again(attempt_id, known)
  local records = {}
  for index = 3, #known, 2 do
    local offset, record = known[index], record_of(known[index])
    local lease = redis.call('ZSCORE', K.leases, offset)
    if not record or record[RECEIVES] ~= known[index + 1] or not lease or tonumber(lease) ~= known[2] then
      return false
    end
    records[index] = record
  end
  for index = 3, #known, 2 do
    redis.call('ZADD', K.leases, deadline, known[index])
    note(known[index], 'extended', visible_at)
    show(known[index], records[index], batch_of(known[index], records[index]))
  end
  known[2] = visible_at
  redis.call('HSET', K.attempts, attempt_id, cmsgpack.pack(known))
  return true
end

local function remember_attempt(attempt_id)
  local known = { now, visible_at }
  for index = HEAD + 1, #answer do
    known[#known + 1], known[#known + 2] = known_of(answer[index])
  end
  remember(K.meta, K.attempts, K.attempts_old, 'attempts_since', now, attempt_ms, ATTEMPTS_KEPT, attempt_id,
    cmsgpack.pack(known))
end

-- Write what went out.
local function hide()
  if #leased > 0 then
    redis.call('ZADD', K.leases, unpack(leased))
    redis.call('HSET', K.records, unpack(recorded))
    leased, recorded = {}, {}
  end
end

local function take_for(attempt_id)
  if not fifo then
    take_fairly()
    return
  end
  take_locking()
  hide()
  if attempt_id ~= '' and #answer > HEAD then
    remember_attempt(attempt_id)
  end
end

-- Whether a caller that takes nothing would get something: never false when it would.
local function has_ready()
  return tonumber(cursor) < tonumber(held[1]) or redis.call('EXISTS', K.returned, K.turns) > 0
end

-- Why nothing was there: when it is worth to look again.
local function look_again_at(full, asks_only)
  if full and not fifo then
    return FULL
  elseif more_is_due or passes_left <= 0 or (asks_only and has_ready()) then
    return now
  end
  hide()
  return next_due()
end

local function serve(at)
  visible_at = now + tonumber(ARGV[at])
  deadline = word(visible_at)
  messages_max, bytes_max = math.min(tonumber(ARGV[at + 1]), room), tonumber(ARGV[at + 2])
  answer, bytes, left = { -1, 0 }, 0, 0
  deliver_to(ARGV[at + 6])
  local full, attempt_id, asks_only = room <= 0, ARGV[at + 4], ARGV[at + 1] == '0'
  local known = not held[7] and answered_before(attempt_id)
  if held[7] then
    full = false  -- a copy of another deployment's queue, or one that was moved there: nothing is delivered
  elseif not (known and answer_again(attempt_id, known)) then
    if known and now < known[2] and ARGV[at + 5] == '1' then
      answer[1] = REFUSED
      return
    end
    if not asks_only then
      take_for(attempt_id)
    end
    room, received = room - (#answer - HEAD), received + #answer - HEAD
  end
  bytes_left, answer[2] = bytes_left - bytes, left
  if #answer == HEAD then
    answer[1] = look_again_at(full, asks_only)
    if ARGV[at + 3] == '1' then
      redis.call('HSET', K.meta, 'waiting', '1')
    end
  end
end

-- The first caller is always served, so whoever asks again gets there.
local reply, served = { OK, now }, false
for at = FIRST_CALLER, #ARGV, CALLER_ARGS do
  if served and (bytes_left <= 0 or passes_left <= 0 or walk_left <= 0) then
    answer = { NOT_SERVED, 0 }
  else
    serve(at)
    served = true
  end
  reply[#reply + 1] = answer
end
hide()
if cursor ~= held[2] then
  redis.call('HSET', K.meta, 'cursor', cursor)
end
count('receives', received)
count('expired', lapsed)
return reply
