-- How much of a log waits to be archived.
-- KEYS     1 log  2 meta
-- ARGV     1 the offset up to which it is archived
-- Returns  { OK, start, next, 1 if it is closed, bytes that wait, arrival ms of the oldest that waits or -1 },
--          or what lib/answers.lua says
-- @include numbers
-- @include answers
-- @include entries
-- @include archived
local log, meta = KEYS[1], KEYS[2]
local held = redis.call('HMGET', meta, 'next', 'start', 'bytes', 'deleted', 'closed')
if held[4] then
  return { DELETED }
elseif not held[1] then
  return { UNKNOWN_LOG }
end
local next_offset, start, bytes = tonumber(held[1]), tonumber(held[2]), tonumber(held[3])
local before, arrival = bytes_before(log, bytes, math.max(start, tonumber(ARGV[1])))
return { OK, start, next_offset, held[5] and 1 or 0, bytes - before, arrival or -1 }
