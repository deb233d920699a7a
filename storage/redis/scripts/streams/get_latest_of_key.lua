-- The newest record of a partition key, by the index that append_records.lua keeps.
-- KEYS     1 log  2 meta  3 keys
-- ARGV     1 partition key
-- Returns  { OK, offset, { id, fields } }: the entry that holds it; { OK, -1 } when the log never had one of
--          the key, { OK, -2 } when it had and it has expired, or may have had; or what lib/status.lua says
-- @include numbers
-- @include status
-- @include entries
local held = redis.call('HMGET', KEYS[2], 'next', 'start', 'deleted', 'indexed')
local absent = absence(held[3], held[1])
if absent then
  return absent
end
local offset = tonumber(redis.call('HGET', KEYS[3], ARGV[1]) or '-1')
if offset < 0 then
  return { OK, (held[4] == '0' or held[1] == '0') and -1 or -2 }
elseif offset < tonumber(held[2]) then
  return { OK, -2 }
end
return { OK, offset, entry_at(KEYS[1], offset) }
