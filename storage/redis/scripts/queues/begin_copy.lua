-- Begin, or continue, to copy another deployment's queue into this one, which takes nothing else from then on.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 fence of copies  3 log id of the queue to copy  4 log id that it was copied from itself, or
--          empty  5 next offset there
-- Returns  { OK, 0 when the queue takes messages of its own: it is not touched }, or { OK, session, position or '', next
--          offset to copy }, or what lib/status.lua says
-- Keeps    Q5: messages here that the other queue may not have stay
-- @include numbers
-- @include time
-- @include status
-- @include history
-- @include queue
-- @include purge
-- @include copies
-- @include existing_queue
now_at(ARGV[1], last_ms)
local log_id = string.match(K.meta, '{(.-)}')
local held = redis.call('HMGET', K.meta, 'fence', 'copy_of', 'copy_position', 'copy_next', 'bytes')
local is_unused = (held[5] or '0') == '0' and redis.call('EXISTS', K.log, K.kept, K.dead, K.moving) == 0
if held[1] ~= ARGV[2] and not (is_unused and not held[1]) then
  return { OK, 0 }
end
redis.call('HSET', K.meta, 'fence', ARGV[2])
if held[2] ~= ARGV[3] then
  redis.call('UNLINK', copies_key(), copies_key(true))
  if ARGV[4] == log_id and tonumber(ARGV[5]) >= tonumber(next_offset) then  -- it has everything of this one
    purge(next_offset, held[5])
    redis.call('UNLINK', K.dead, K.dead_due, K.dead_letters)
  end
  held[3], held[4] = '', '0'
  redis.call('HSET', K.meta, 'copy_of', ARGV[3], 'copy_position', '', 'copy_next', '0')
end
return { OK, redis.call('HINCRBY', K.meta, 'copy_session', 1), held[3] or '', tonumber(held[4] or '0') }
