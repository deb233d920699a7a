-- Add the messages of one flush to a queue: several calls' parts, each under its own idempotency key.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 store epoch  3 '1' for a fifo queue
--          4 idempotency window ms  5 keys at most  6 deduplication window ms
--          7 messages the queue may hold, 0 for no limit  8 bytes it may hold, 0 for no limit  9 what happens when
--          a part would be too much: 'reject', 'drop_oldest' or 'dead_letter'  10 '1': shown as a stream
--          11 events of its history at most, 0 for no history  12 monotonic producers at most
--          then for each part: the number of its messages, negative if four follow it: its key or empty, the fingerprint
--          of its content, empty or MessagePack claims of monotonic producers (lib/writer_watermarks.lua), and the
--          generation of the queue's partitions; and two for each message: a batch v1 and its options: empty, or MessagePack { delay ms, group, deduplication key,
--          time to live ms or 0, priority }
-- Returns  { OK, now_ms, offsets left below the ceiling, { KEY_REUSED } or { SENT, first offset } when a
--          part's offsets follow one another, or { MIXED, offset... } with -1 - offset for a duplicate, or
--          { QUEUE_FULL } when nothing of the part was added; of a part with claims also { RISEN_BEFORE } when all of
--          it was, { STRADDLES, last sequences }, { PRODUCER_OVER } or { PRODUCERS_FULL } when nothing of it was, and of
--          one with a key or claims { CHANGED } when the log knows a later generation (find_sent.lua) },
--          or what lib/status.lua says
-- Keeps    Q5 nothing accepted is lost; Q6 a group's messages in order of sends; Q7 one message for each
--          deduplication id and window; Q8 never early; Q10 what makes room counts as dropped, or is dead-lettered;
--          S1, S2; T1, T5 a route adds one copy
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include writable
-- @include two_generations
-- @include history
-- @include queue
-- @include sweep
-- @include capacity
-- @include view
-- @include use
-- @include writer_watermarks
local SENT, MIXED, KEY_REUSED, QUEUE_FULL = 0, 1, 2, 3
local RISEN_BEFORE, STRADDLES, PRODUCER_OVER, PRODUCERS_FULL, CHANGED = 4, 5, 6, 7, 8
local FIRST_PART = 13
local LONG = 900000  -- ms; SQS knows no longer delay

fifo = ARGV[3] == '1'
local held = redis.call('HMGET', K.meta, 'next', 'ceiling', 'store_epoch', 'deleted', 'last_ms', 'last_due', 'view',
  'history', 'fence', 'generation', 'used')
local wanted, index, parts = 0, FIRST_PART, {}
while index <= #ARGV do
  local messages = tonumber(ARGV[index])
  if messages < 0 then
    messages, index = -messages, index + 4
  end
  wanted = wanted + messages
  parts[#parts + 1] = { index + 1, messages }
  index = index + 1 + 2 * messages
end
local refused = refusal(held[1], held[2], held[3], held[4], ARGV[2], wanted)
if refused then
  return refused
elseif held[9] then
  return { FENCED }
end
local now = now_at(ARGV[1], held[5])
note_use(held[11], now)
local at, sent_now = '-' .. word(now), ' ' .. word(now)
local next_offset = tonumber(held[1])
local has_view = held[7]
if ARGV[10] == '1' and not has_view then
  begin_view(held[1])
  has_view = true
end
keep_history(held[8], ARGV[11])
local bytes, duplicates, due_at = 0, 0, 0
local last_due = tonumber(held[6] or '0')

local messages_max, bytes_max = tonumber(ARGV[7]), tonumber(ARGV[8])
local capped = messages_max > 0 or bytes_max > 0

-- Options of the messages of a fifo queue by the positions of their batches, and what is known of their deduplication
-- ids, which are read together; `sent_ids` are written together.
local options_at, known_ids, sent_ids = {}, {}, {}

local function read_dedup_ids()
  local ids = {}
  for _, part in ipairs(parts) do
    for position = part[1], part[1] + 2 * part[2] - 1, 2 do
      local options = cmsgpack.unpack(ARGV[position + 1])
      options_at[position] = options
      ids[#ids + 1] = options[3] ~= '' and options[3] or nil
    end
  end
  known_ids = recall_many(K.dedup, K.dedup_old, ids)
end

if fifo then
  read_dedup_ids()
end

local function options_of(position)
  local packed = ARGV[position + 1]
  return options_at[position] or packed ~= '' and cmsgpack.unpack(packed)
end

local function sent_before(dedup_id)
  local known = known_ids[dedup_id]
  if known then
    local offset, sent = string.match(known, '^(%d+) (%d+)$')
    if now - tonumber(sent) < tonumber(ARGV[6]) then
      return tonumber(offset)
    end
  end
end

-- Records and turns of this call are written together, a command for many of them, and so are the messages of a group.
local records, turns, joined, joining = {}, {}, {}, {}
local TOGETHER = 1000

local function join(offset, group)
  local offsets = joining[group]
  if not offsets then
    offsets = {}
    joined[#joined + 1], joining[group] = group, offsets
  end
  offsets[#offsets + 1] = offset
end

local function join_groups()
  for _, group in ipairs(joined) do
    local offsets, has_turn = joining[group], false
    for first = 1, #offsets, TOGETHER do
      local some = { unpack(offsets, first, math.min(first + TOGETHER - 1, #offsets)) }
      has_turn = join_group(group, some) or has_turn
    end
    if has_turn then
      turns[#turns + 1] = group
    end
  end
  joined, joining = {}, {}
end

local function write_together()
  join_groups()
  for first = 1, #records, TOGETHER do
    redis.call('HSET', K.records, unpack(records, first, math.min(first + TOGETHER - 1, #records)))
  end
  for first = 1, #turns, TOGETHER do
    redis.call('RPUSH', K.turns, unpack(turns, first, math.min(first + TOGETHER - 1, #turns)))
  end
  records, turns = {}, {}
end

-- Keep a message that does not simply wait in the log. In a fifo queue none is due before those sent before it.
-- Retention counts from the sending, or from the due time of one that waits longer than LONG.
local function keep_apart(offset, size, delay_ms, group, ttl_ms, priority)
  local due = now + delay_ms
  if fifo then
    due = math.max(due, last_due)
    last_due = due
  end
  if due <= now and group ~= '' and ttl_ms == 0 and priority == 0 then
    join(offset, group)
    records[#records + 1], records[#records + 2] = offset, packed_as_sent(now, size, group)
    return 0
  end
  local record = new_record(now, group, size)
  record[PRIORITY] = priority
  if due > now then
    due_at = due
    if delay_ms > LONG then
      renew(offset, record, due)
    end
    redis.call('ZADD', K.delayed, word(due), offset)
  elseif group == '' then
    make_ready(offset, record)
  else
    join(offset, group)
  end
  record[EXPIRES] = ttl_ms > 0 and due + ttl_ms or 0
  records[#records + 1], records[#records + 2] = offset, cmsgpack.pack(record)
  return record[EXPIRES]
end

-- Put a message where it waits for its delivery, or for its time.
local function place(offset, batch, options)
  if not options then
    redis.call('XADD', K.log, offset .. at, 'd', batch)
    return
  end
  local delay_ms, group, ttl_ms, priority = options[1], options[2], options[4], options[5]
  local expires
  if delay_ms == 0 and group == '' and priority == 0 then
    expires = now + ttl_ms
    redis.call('XADD', K.log, offset .. at, 'd', batch, 't', word(expires))
  else
    redis.call('XADD', K.log, offset .. at, 'd', batch, 'x', '1')
    expires = keep_apart(offset, #batch, delay_ms, group, ttl_ms, priority)
  end
  if ttl_ms > 0 then
    redis.call('ZADD', K.expiring, word(expires), offset)
  end
end

-- Gives the message's offset, and true when it was sent before.
local function send(position)
  local batch, options, offset = ARGV[position], options_of(position), word(next_offset)
  if fifo and options[3] ~= '' then
    local earlier = sent_before(options[3])
    if earlier then
      duplicates = duplicates + 1
      return earlier, true
    end
    local sent = offset .. sent_now
    known_ids[options[3]] = sent
    sent_ids[#sent_ids + 1], sent_ids[#sent_ids + 2] = options[3], sent
  end
  due_at = 0
  place(offset, batch, options)
  if noted_max then
    note(offset, 'sent', due_at)
  end
  if has_view then
    add_to_view(offset .. at, batch)
  end
  next_offset = next_offset + 1
  bytes = bytes + #batch
  return next_offset - 1, false
end

-- How many messages of a part are new, and their bytes.
local function weigh(first, messages)
  local many, size = 0, 0
  for position = first, first + 2 * messages - 1, 2 do
    local dedup_id = fifo and options_of(position)[3] or ''
    if dedup_id == '' or not sent_before(dedup_id) then
      many, size = many + 1, size + #ARGV[position]
    end
  end
  return many, size
end

local function send_part(first, messages)
  if capped then
    write_together()
    local many, size = weigh(first, messages)
    if not make_room(many, size, bytes, { messages_max, bytes_max, ARGV[9] }, now) then
      return { QUEUE_FULL }
    end
  end
  local offsets, mixed = { MIXED }, false
  for position = first, first + 2 * messages - 1, 2 do
    local offset, duplicate = send(position)
    table.insert(offsets, duplicate and -1 - offset or offset)
    mixed = mixed or duplicate
  end
  return mixed and offsets or { SENT, offsets[2] }
end

-- What a key's first call was answered: { KEY_REUSED }, or its offsets, now all duplicates.
local function answered_before(key, fingerprint)
  local known = recall(K.idem, K.idem_old, key)
  if known then
    local answered = cmsgpack.unpack(known)
    if now - answered[2] < tonumber(ARGV[4]) then
      if answered[1] ~= fingerprint then
        return { KEY_REUSED }
      end
      local offsets = { MIXED }
      for position = 3, #answered do
        table.insert(offsets, -1 - answered[position])
      end
      return offsets
    end
  end
end

local function remember_answer(key, fingerprint, verdict, messages)
  local answered = { fingerprint, now }
  for position = 1, messages do
    local offset = verdict[1] == SENT and verdict[2] + position - 1 or verdict[position + 1]
    table.insert(answered, offset < 0 and -1 - offset or offset)
  end
  remember(K.meta, K.idem, K.idem_old, 'idem_since', now, tonumber(ARGV[4]), tonumber(ARGV[5]), key,
    cmsgpack.pack(answered))
end

-- What speaks against a part with claims, if anything does.
local function verdict_of_claims(claims)
  local stands, lasts = judge_claims(K.rising, K.rising_over, K.rising_over_old, claims, tonumber(ARGV[12]))
  if stands == BELOW then
    return { RISEN_BEFORE }
  elseif stands == ACROSS then
    return { STRADDLES, lasts }
  elseif stands == OVER then
    return { PRODUCER_OVER }
  elseif stands == TOO_MANY then
    return { PRODUCERS_FULL }
  end
end

local function send_sequenced(first, messages, claims)
  local verdict = verdict_of_claims(claims)
  if not verdict then
    verdict = send_part(first, messages)
    if verdict[1] ~= QUEUE_FULL then
      raise_watermarks(K.rising, claims)
    end
  end
  return verdict
end

-- A part with a key or claims, of which the log may know something.
local function send_remembered(first, messages, key, fingerprint, claims, generation)
  if held[10] and tonumber(held[10]) > tonumber(generation) then
    return { CHANGED }
  elseif claims ~= '' then
    return send_sequenced(first, messages, cmsgpack.unpack(claims))
  end
  local verdict = answered_before(key, fingerprint)
  if not verdict then
    verdict = send_part(first, messages)
    if verdict[1] ~= QUEUE_FULL then
      remember_answer(key, fingerprint, verdict, messages)
    end
  end
  return verdict
end

local answer = { OK, now, 0 }
index = FIRST_PART
while index <= #ARGV do
  local messages, verdict = tonumber(ARGV[index])
  if messages < 0 then
    messages = -messages
    verdict = send_remembered(index + 5, messages, unpack(ARGV, index + 1, index + 4))
    index = index + 4
  else
    verdict = send_part(index + 1, messages)
  end
  table.insert(answer, verdict)
  index = index + 1 + 2 * messages
end

write_together()
-- 1e9 items: deduplication has a window, and no cap that would let a duplicate in early.
remember_many(K.meta, K.dedup, K.dedup_old, 'dedup_since', now, tonumber(ARGV[6]), 1e9, sent_ids)
write_watermarks(K.rising)
local added = next_offset - tonumber(held[1])
if added > 0 then
  redis.call('HSET', K.meta, 'next', word(next_offset), 'last_ms', word(now))
  redis.call('HINCRBY', K.meta, 'bytes', bytes)
  if last_due > now then
    redis.call('HSET', K.meta, 'last_due', word(last_due))
  end
  wake(K.meta)
  end_view(next_offset, now)
end
count('deduplicated', duplicates)
answer[3] = tonumber(held[2]) - next_offset
return answer
