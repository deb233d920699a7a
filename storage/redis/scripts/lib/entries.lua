-- Entries of a log: the id is <first offset>-<arrival ms>; the fields are one or more d (batch v1),
-- n (records, absent: 1) and c (log bytes before it).
local LAST = '-18446744073709551615'

local function place(id)
  local dash = string.find(id, '-', 1, true)
  return tonumber(string.sub(id, 1, dash - 1)), tonumber(string.sub(id, dash + 1))
end

local function field(fields, name)
  for index = 1, #fields, 2 do
    if fields[index] == name then
      return fields[index + 1]
    end
  end
end

local function records_in(fields)
  return tonumber(field(fields, 'n') or '1')
end

-- The entry that holds `offset`, or the nearest one before it; nil when there is none.
local function entry_at(log, offset)
  return redis.call('XREVRANGE', log, word(offset) .. LAST, '-', 'COUNT', 1)[1]
end

-- The first offset at or after `start` whose entry satisfies `late_enough(arrival_ms, fields)`, a test
-- that, once true, stays true along the log. Gives next_offset when there is none.
local function first_where(log, start, next_offset, late_enough)
  local low, high = start, next_offset
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = entry_at(log, middle)
    if not entry then
      low = middle + 1
    else
      local first, arrival = place(entry[1])
      local past = first + records_in(entry[2])
      if past > low and late_enough(arrival, entry[2]) then
        high = math.max(low, math.min(first, middle))
        if first <= low then
          return low
        end
      else
        low = math.max(middle + 1, past)
      end
    end
  end
  return math.min(low, next_offset)
end
