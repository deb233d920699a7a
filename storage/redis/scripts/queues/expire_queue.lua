-- Delete a queue that nobody has used for a time, unless it is only asked whether that is so. Uses are sends and receives,
-- and copies; a queue is in use while messages are in flight, and while it takes copies of another deployment's alone.
-- The first call begins the time.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 the time, ms  3 '1': delete it; what it holds is freed by tombstone_log.lua
-- Returns  { OK, 1 if it is idle, and deleted if so asked }, or what lib/status.lua says
-- Keeps    Q4: after a send that was answered, or a receive, the queue is there for the time at least
-- @include numbers
-- @include time
-- @include status
-- @include history
-- @include queue
-- @include use
-- @include existing_queue
local now = now_at(ARGV[1], last_ms)
local used, fence = unpack(redis.call('HMGET', K.meta, 'used', 'fence'))
if not used then
  redis.call('HSET', K.meta, 'used', word(now))
  return { OK, 0 }
end
local idle_ms = now - math.max(tonumber(used), tonumber(last_ms or '0'))
if fence or idle_ms < tonumber(ARGV[2]) + USED_STEP
  or redis.call('ZCOUNT', K.leases, '(' .. word(now), '+inf') > 0 then
  return { OK, 0 }
end
if ARGV[3] == '1' then
  redis.call('HSET', K.meta, 'deleted', '1')
  redis.call('PUBLISH', 'ms:wake', string.match(K.meta, '{(.-)}'))
end
return { OK, 1 }
