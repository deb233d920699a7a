-- Forget what a stream's retention no longer covers, of an archived one what it need not keep hot, but nothing
-- that is not archived; and say how many bytes it may hold before it must wait for its archive.
-- KEYS     1 log  2 meta
-- ARGV     1 now_ms or empty  2 entries to free at most in this call, then what is kept, or empty for all:
--          3 retention ms  4 bytes  5 records; then, or empty where there is no archive:
--          6 the offset up to which it is archived  7 bytes that may wait for it, or empty for any number
-- Returns  { OK, start, entries freed }, or what lib/status.lua says
-- Keeps    S1: a record is there or has expired; S3: hot and archive meet
-- @include numbers
-- @include time
-- @include status
-- @include entries
-- @include trim
-- @include archived
-- @include existing_log

local cut = start
if ARGV[3] ~= '' then
  local oldest_kept = now_at(ARGV[1], last_ms) - tonumber(ARGV[3])
  cut = first_where(log, start, next_offset, function(arrival)
    return arrival > oldest_kept
  end)
end
if ARGV[4] ~= '' then
  local first_byte = bytes - tonumber(ARGV[4])
  cut = math.max(cut, first_where(log, start, next_offset, function(_, fields)
    return tonumber(field(fields, 'c')) >= first_byte
  end))
end
if ARGV[5] ~= '' then
  cut = math.max(cut, next_offset - tonumber(ARGV[5]))
end
local full_at
if ARGV[6] ~= '' then
  cut = math.max(start, math.min(cut, tonumber(ARGV[6])))
  if ARGV[7] ~= '' then
    full_at = bytes_before(log, bytes, math.max(start, tonumber(ARGV[6]))) + tonumber(ARGV[7])
  end
end
if full_at then
  redis.call('HSET', meta, 'full_at', word(full_at))
else
  redis.call('HDEL', meta, 'full_at')
end
return { OK, cut, cut_at(log, meta, start, next_offset, cut, ARGV[2]) }
