-- What a log holds, in bytes of log.
-- KEYS     1 log  2 meta
-- ARGV     none
-- Returns  the bytes; 0 for a log that is not there
-- @include entries
local held = redis.call('HMGET', KEYS[2], 'bytes', 'bytes_gone')
local bytes = tonumber(held[1] or '0')
if held[2] then  -- a queue's: its entries are not weighed one after another
  return bytes - tonumber(held[2])
end
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local before = first and field(first[2], 'c')
return before and bytes - tonumber(before) or (first and bytes or 0)
