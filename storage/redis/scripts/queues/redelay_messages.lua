-- Apply a changed delay of a fifo queue to messages that were sent before and never received, a page of them.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 offset to begin at, or -1 for the first message that may be affected  3 offsets at most
--          4 the delay so far, ms  5 the new delay, ms  6 due time of the last message before the page, ms
-- Returns  { OK, offset to continue at or -1 at the end, due time of the last message }, or what lib/status.lua says
-- Keeps    Q1 one state; Q6 none is due before those sent before it; Q8 never early
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
fifo = true
local now = now_at(ARGV[1], last_ms)
local end_offset, page = tonumber(next_offset), tonumber(ARGV[3])
local old_ms, new_ms, floor = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

-- Messages arrive in the order of their offsets: those that arrived too long ago for either delay need no look.
local function first_affected()
  local low, high = 0, end_offset
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = redis.call('XRANGE', K.log, word(middle), '+', 'COUNT', 1)[1]
    local offset, arrival = string.match(entry and entry[1] or '', '^(%d+)-(%d+)$')
    if not offset or tonumber(arrival) + math.max(old_ms, new_ms) > now then
      high = middle
    else
      low = tonumber(offset) + 1
    end
  end
  return low
end

local function wait_until(offset, record, due, due_before)
  redis.call('ZADD', K.delayed, word(due), offset)
  note(offset, 'changed', due)
  if record[EXPIRES] > 0 then
    record[EXPIRES] = record[EXPIRES] + due - due_before
    save(offset, record)
    redis.call('ZADD', K.expiring, word(record[EXPIRES]), offset)
  end
end

local function redelay(offset, record)
  local due = tonumber(redis.call('ZSCORE', K.delayed, offset) or nil)
  floor = math.max(floor, record[ARRIVAL] + new_ms)
  if due and due ~= floor then
    wait_until(offset, record, floor, due)
  elseif not due and floor > now then
    rearrange(record[GROUP], function()
      redis.call('LREM', waiting_of(record[GROUP]), -1, offset)
    end)
    wait_until(offset, record, floor, record[ARRIVAL] + old_ms)
  end
end

local first = tonumber(ARGV[2])
first = first < 0 and first_affected() or first
local last = math.min(first + page, end_offset) - 1
local offsets = {}
for offset = first, last do
  offsets[#offsets + 1] = word(offset)
end
if #offsets > 0 then
  for nth, packed in ipairs(redis.call('HMGET', K.records, unpack(offsets))) do
    local record = packed and cmsgpack.unpack(packed)
    if record and record[RECEIVES] == 0 and record[RENEWED] == 0 and not outlived(record, now) then
      redelay(offsets[nth], record)
    end
  end
end
wake(K.meta)
if last + 1 < end_offset then
  return { OK, last + 1, floor }
end
redis.call('HSET', K.meta, 'last_due', word(floor))
return { OK, -1, floor }
