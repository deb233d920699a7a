-- Forget the records before an offset.
-- KEYS     1 log  2 meta
-- ARGV     1 offset: what lies before it goes  2 entries to free at most in this call
-- Returns  { OK, start, next }, nothing done when the offset lies beyond next; or what lib/status.lua says
-- Keeps    S1: a record is there or has expired; the start never goes back
-- @include numbers
-- @include status
-- @include entries
-- @include trim
-- @include existing_log
if tonumber(ARGV[1]) > next_offset then
  return { OK, start, next_offset }
end
local cut = math.max(start, tonumber(ARGV[1]))
cut_at(log, meta, start, next_offset, cut, ARGV[2])
return { OK, cut, next_offset }
