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
local log, meta = KEYS[1], KEYS[2]
local held = redis.call('HMGET', meta, 'next', 'start', 'bytes', 'deleted', 'closed', 'last_ms')
local absent = absence(held[4], held[1])
if absent then
  return absent
end
local next_offset, start, bytes = tonumber(held[1]), tonumber(held[2]), tonumber(held[3])
local before, arrival = bytes_before(log, bytes, math.max(start, tonumber(ARGV[2])))
local waited = arrival and now_at(ARGV[1], held[6]) - arrival or -1
return { OK, start, next_offset, held[5] and 1 or 0, bytes - before, waited }
