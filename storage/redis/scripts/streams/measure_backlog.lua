-- How much of a log waits to be archived.
-- KEYS     1 log  2 meta
-- ARGV     1 now_ms or empty  2 the offset up to which it is archived
-- Returns  { OK, start, next, 1 if it is closed, bytes that wait, ms for which the oldest of them has waited or -1 },
--          or what lib/status.lua says
-- @include numbers
-- @include time
-- @include status
-- @include entries
-- @include archived
-- @include existing_log
local before, arrival = bytes_before(log, bytes, math.max(start, tonumber(ARGV[2])))
local waited = arrival and now_at(ARGV[1], last_ms) - arrival or -1
return { OK, start, next_offset, closed and 1 or 0, bytes - before, waited }
