-- How far a log reaches, and what it holds.
-- KEYS     1 log  2 meta  3 prod  4 prod_old
-- ARGV     none
-- Returns  { OK, start, next, bytes of the entries it holds, 1 if it remembers producers, 1 if it is fenced,
--          log epoch }, or what lib/status.lua says
-- @include status
-- @include entries
local held = redis.call('HMGET', KEYS[2], 'next', 'start', 'bytes', 'deleted', 'fence',
  'log_epoch')
local absent = absence(held[4], held[1])
if absent then
  return absent
end
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local before = tonumber(first and field(first[2], 'c') or held[3])  -- a queue's entries have no c
local writers = redis.call('EXISTS', KEYS[3], KEYS[4]) > 0 and 1 or 0
return { OK, tonumber(held[2]), tonumber(held[1]), tonumber(held[3]) - before, writers, held[5] and 1 or 0,
  tonumber(held[6] or '0') }  -- a queue's view has none
