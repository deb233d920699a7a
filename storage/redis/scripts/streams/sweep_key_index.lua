-- Forget keys whose newest record has expired: a part of the index in each call, in turn.
-- KEYS     1 meta  2 keys
-- ARGV     1 keys to look at, about
-- Returns  { OK, keys forgotten }, or what lib/status.lua says
-- @include status
local held = redis.call('HMGET', KEYS[1], 'next', 'start', 'keys_cursor', 'deleted')
local absent = absence(held[4], held[1])
if absent then
  return absent
end
local start, forgotten = tonumber(held[2]), 0
local page = redis.call('HSCAN', KEYS[2], held[3] or '0', 'COUNT', ARGV[1])
for index = 1, #page[2], 2 do
  if tonumber(page[2][index + 1]) < start then
    forgotten = forgotten + redis.call('HDEL', KEYS[2], page[2][index])
  end
end
redis.call('HSET', KEYS[1], 'keys_cursor', page[1])
return { OK, forgotten }
