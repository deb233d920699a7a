-- End the copying of another deployment's queue into this one, which takes and delivers messages from now on.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 fence of copies
-- Returns  { OK, 1 if it was a copy, else 0 }, or what lib/status.lua says
-- @include status
-- @include notify
-- @include history
-- @include queue
-- @include copies
-- @include existing_queue
if redis.call('HGET', K.meta, 'fence') ~= ARGV[1] then
  return { OK, 0 }
end
redis.call('HDEL', K.meta, 'fence')
redis.call('HINCRBY', K.meta, 'copy_session', 1)
redis.call('UNLINK', copies_key(), copies_key(true))
wake(K.meta)
return { OK, 1 }
