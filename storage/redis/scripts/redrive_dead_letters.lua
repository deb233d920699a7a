-- Make dead letters ready again in their own queue, oldest first, as if just sent: counts start anew, and
-- so does the retention.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 how many at most  3 '1' for fifo
-- Returns  { OK, redriven }, or what lib/answers.lua says
-- Keeps    Q1 one state; Q3 a redrive starts anew; Q6 a group's message goes back before its later ones
-- @include numbers
-- @include time
-- @include wake
-- @include answers
-- @include queue
fifo = ARGV[3] == '1'
local held = redis.call('HMGET', K.meta, 'next', 'last_ms', 'deleted')
if held[3] then
  return { DELETED }
elseif not held[1] then
  return { UNKNOWN_LOG }
end
local now = now_at(ARGV[1], held[2])

local offsets = redis.call('ZRANGE', K.dead, 0, tonumber(ARGV[2]) - 1)
for _, offset in ipairs(offsets) do
  local record, _, _, batch = unpack(cmsgpack.unpack(redis.call('HGET', K.dead_letters, offset)))
  local fresh = new_record(record[ARRIVAL], record[GROUP])
  fresh[RECEIVES], fresh[BEFORE], fresh[PRIORITY] = record[RECEIVES], record[RECEIVES], record[PRIORITY]
  renew(offset, fresh, now)
  redis.call('ZREM', K.dead, offset)
  redis.call('ZREM', K.dead_due, offset)
  redis.call('HDEL', K.dead_letters, offset)
  redis.call('HSET', K.kept, offset, batch)
  save(offset, fresh)
  make_ready(offset, fresh)
end
if #offsets > 0 then
  wake(K.meta)
end
return { OK, #offsets }
