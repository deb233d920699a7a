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
-- @include existing_queue
local is_shown = redis.call('HEXISTS', K.meta, 'view') == 1
if ARGV[1] == '1' and not is_shown then
  begin_view(next_offset)
elseif ARGV[1] == '0' and is_shown then
  redis.call('HDEL', K.meta, 'view')
  redis.call('UNLINK', K.view, K.view_meta)
end
return { OK }
