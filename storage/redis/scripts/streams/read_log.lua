-- Read records of a log from an offset, from a time, or its last ones. Changes nothing but, on request,
-- the flag that asks for a wake-up.
-- KEYS     1 log  2 meta
-- ARGV     1 now_ms or empty  2 'offset', 'time' or 'tail'  3 the offset, time in ms, or number
--          4 records at most  5 bytes at most (one entry is always given)  6 '1': ask for a wake-up
--          when nothing is there
-- Returns  { OK, now_ms, start, next, from, children of a closed log or empty, { id, fields }... }: the
--          entries that hold the offsets from `from`, the first possibly from its middle; or what
--          lib/status.lua says
-- @include numbers
-- @include time
-- @include status
-- @include entries
local log, meta = KEYS[1], KEYS[2]
local held = redis.call('HMGET', meta, 'next', 'start', 'last_ms', 'deleted', 'closed')
local absent = absence(held[4], held[1])
if absent then
  return absent
end
local next_offset, start = tonumber(held[1]), tonumber(held[2])
local now = now_at(ARGV[1], held[3])
local number, records_max, bytes_max = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local from = number
if ARGV[2] == 'time' then
  from = first_where(log, start, next_offset, function(arrival)
    return arrival >= number
  end)
  -- A hole right before it may be what a restored store forgot of that time: it is told as one.
  if from > start then
    local before = entry_at(log, from - 1)
    local edge = before and place(before[1]) + records_in(before[2]) or start
    from = math.max(start, math.min(from, edge))
  end
elseif ARGV[2] == 'tail' then
  from = math.max(start, next_offset - number)
end

local answer = { OK, now, start, next_offset, from, held[5] or '' }
if from < start or from > next_offset then
  return answer
end
if from == next_offset then
  if ARGV[6] == '1' and not held[5] then
    redis.call('HSET', meta, 'waiting', '1')
  end
  return answer
end

local holding = entry_at(log, from)
local cursor = word(from)
if holding then
  local first = place(holding[1])
  if first + records_in(holding[2]) > from then
    cursor = word(first)
  end
end
local records, bytes, entries = 0, 0, 0
local page = 1
while records < records_max and bytes < bytes_max do
  local found = redis.call('XRANGE', log, cursor, '+', 'COUNT', page)
  if #found == 0 then
    break
  end
  for _, entry in ipairs(found) do
    local size = 0
    for _, value in ipairs(entry[2]) do
      size = size + #value
    end
    if entries > 0 and (bytes + size > bytes_max or records >= records_max) then
      return answer
    end
    local first = place(entry[1])
    local count = records_in(entry[2])
    records = records + first + count - math.max(first, from)
    bytes, entries = bytes + size, entries + 1
    table.insert(answer, entry)
    cursor = word(first + count)
  end
  -- As many entries as should still fit, so that a page is not copied to be thrown away.
  local by_bytes = (bytes_max - bytes) / (bytes / entries)
  local by_records = (records_max - records) / (records / entries)
  page = math.max(1, math.min(100, math.ceil(math.min(by_bytes, by_records))))
end
return answer
