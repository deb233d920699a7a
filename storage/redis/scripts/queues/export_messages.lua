-- Show messages with all that a copy of the queue needs of them, in the order of their offsets; takes none.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 to 7 as sweep_queue.lua  8 show those after this offset  9 how many at most  10 bytes of batches after
--          which no more follow  11 '1': dead letters  12.. only those at these offsets, dead letters or not
-- Returns  { OK, now_ms, the offset looked at last, or how many of the offsets were, or -1 when there are no more;
--          message... }, or what lib/status.lua says. A message is { offset, due ms or -1, { died ms, reason } or empty, batch, arrival ms, renewed ms, group,
--          receives, failures, crashes, first received ms, expires ms, priority, reason and details of its last failure }
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include sweep
-- @include existing_queue
local HEAD, PAGE, FIRST_OFFSET = 3, 100, 12

local now = now_at(ARGV[1], last_ms)
fifo = ARGV[7] == '1'
if move_due(tonumber(ARGV[2]), now, tonumber(ARGV[5])) > 0 then
  wake(K.meta)
end
count('expired', drop_expired(now, tonumber(ARGV[3]), tonumber(ARGV[6])))

local last, wanted, bytes_left = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local answer = { OK, now, -1 }

local function wants_more()
  return #answer - HEAD < wanted and bytes_left > 0
end

local function show(offset, record, batch, death)
  local due = redis.call('ZSCORE', K.delayed, offset)
  local reason, details = last_failure(record)
  bytes_left, last = bytes_left - #batch, tonumber(offset)
  answer[#answer + 1] = { last, tonumber(due or -1), death or {}, batch, record[ARRIVAL], record[RENEWED], record[GROUP],
    record[RECEIVES] - record[BEFORE], record[FAILURES], record[CRASHES], record[FIRST], record[EXPIRES],
    record[PRIORITY], reason, details }
end

local function show_entry(offset, arrival, fields)
  local record = record_of(offset)
  if not record then
    record = new_record(tonumber(arrival), '', #fields[2])
    record[EXPIRES] = fields[3] == 't' and tonumber(fields[4]) or 0
  end
  show(offset, record, fields[2])
end

local function show_dead_letter(offset)
  local packed = redis.call('HGET', K.dead_letters, offset)
  if packed then
    local record, died, reason, batch = unpack(cmsgpack.unpack(packed))
    show(offset, record, batch, { died, reason })
  end
  return packed
end

-- On its way to another queue, which may not have it yet.
local function show_moving(offset)
  local packed = redis.call('ZRANGEBYSCORE', K.moving, offset, offset)[1]
  if packed then
    local _, record, batch = unpack(cmsgpack.unpack(packed))
    show(offset, record, batch)
  end
  return packed
end

local function show_one(offset)
  local entry = redis.call('XRANGE', K.log, offset, offset, 'COUNT', 1)[1]
  if entry then
    show_entry(offset, string.match(entry[1], '-(%d+)$'), entry[2])
    return
  end
  local batch = kept_batch(offset)
  if batch then
    show(offset, record_of(offset), batch)
  elseif not show_moving(offset) then
    show_dead_letter(offset)
  end
end

-- The offset of the first message after `last` that is beside the log, or infinity. What is on its way to a topic
-- is left out: the topic has it at once, or it is put back, which is a change of its own.
local function next_beside()
  local offset = math.huge
  for _, key in ipairs({ K.kept, K.moving }) do
    local found = redis.call('ZRANGEBYSCORE', key, '(' .. word(last), '(' .. word(ROUTED), 'WITHSCORES', 'LIMIT',
      0, 1)[2]
    offset = math.min(offset, tonumber(found or math.huge))
  end
  return offset
end

local function show_beside_before(offset)
  local beside = next_beside()
  while beside < offset and wants_more() do
    show_one(word(beside))
    last = beside
    beside = next_beside()
  end
end

local function show_live()
  local more = true
  while more and wants_more() do
    local page = redis.call('XRANGE', K.log, word(last + 1), '+', 'COUNT', PAGE)
    more = #page == PAGE
    for _, entry in ipairs(page) do
      local offset, arrival = string.match(entry[1], '^(%d+)-(%d+)$')
      show_beside_before(tonumber(offset))
      if not wants_more() then
        return true
      end
      show_entry(offset, arrival, entry[2])
    end
  end
  if not more then
    show_beside_before(math.huge)
  end
  return more or next_beside() < math.huge
end

local function show_dead()
  for _, offset in ipairs(redis.call('ZRANGEBYSCORE', K.dead, '(' .. word(last), '+inf', 'LIMIT', 0, wanted)) do
    if not wants_more() then
      return true
    end
    show_dead_letter(offset)
  end
  return not wants_more()
end

if #ARGV >= FIRST_OFFSET then
  for index = FIRST_OFFSET, #ARGV do
    if bytes_left <= 0 then
      answer[HEAD] = index - FIRST_OFFSET
      break
    end
    show_one(ARGV[index])
  end
elseif ARGV[11] == '1' then
  answer[HEAD] = show_dead() and last or -1
else
  answer[HEAD] = show_live() and last or -1
end
return answer
