-- Begin to show a queue as a stream from its next message on, or end it and forget what was shown.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 '1' to begin, '0' to end
-- Returns  { OK }, or what lib/status.lua says
-- Keeps    S1: what was shown at an offset is never shown at another; a view that begins anew begins at the queue's end
-- @include numbers
-- @include status
-- @include history
-- @include queue
-- @include view
local held = redis.call('HMGET', K.meta, 'next', 'deleted', 'view')
local absent = absence(held[2], held[1])
if absent then
  return absent
end
if ARGV[1] == '1' and not held[3] then
  begin_view(held[1])
elseif ARGV[1] == '0' and held[3] then
  redis.call('HDEL', K.meta, 'view')
  redis.call('UNLINK', K.view, K.view_meta)
end
return { OK }
