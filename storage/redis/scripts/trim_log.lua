-- Forget what a stream's retention no longer covers.
-- KEYS     1 log  2 meta
-- ARGV     1 now_ms or empty  2 retention ms  3 retention bytes, or empty
--          4 entries to free at most in this call
-- Returns  { OK, start, entries freed }, or what lib/answers.lua says
-- Keeps    S1: only whole entries go, and the logical start says what may be read. Entries below it that
--          are still there are freed by a later call.
-- @include numbers
-- @include time
-- @include answers
-- @include entries
local log, meta = KEYS[1], KEYS[2]
local held = redis.call('HMGET', meta, 'next', 'start', 'last_ms', 'bytes', 'deleted')
if held[5] then
  return { DELETED }
elseif not held[1] then
  return { UNKNOWN_LOG }
end
local next_offset, start, bytes = tonumber(held[1]), tonumber(held[2]), tonumber(held[4])
local oldest_kept = now_at(ARGV[1], held[3]) - tonumber(ARGV[2])

local cut = first_where(log, start, next_offset, function(arrival)
  return arrival > oldest_kept
end)
if ARGV[3] ~= '' then
  local first_byte = bytes - tonumber(ARGV[3])
  cut = math.max(cut, first_where(log, start, next_offset, function(_, fields)
    return tonumber(field(fields, 'c')) >= first_byte
  end))
end
if cut > start then
  redis.call('HSET', meta, 'start', word(cut))
end
local holding = entry_at(log, cut)
local edge = cut
if holding then
  local first = place(holding[1])
  if first + records_in(holding[2]) > cut then
    edge = first
  end
end
local freed = redis.call('XTRIM', log, 'MINID', '~', word(edge), 'LIMIT', ARGV[4])
if freed == 0 and edge == next_offset then
  freed = redis.call('XTRIM', log, 'MINID', word(edge))
end
return { OK, cut, freed }
