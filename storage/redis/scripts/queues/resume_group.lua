-- Deliver a parked group again, in its order. The message that was to blame, if it is still there, has all its
-- attempts once more.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 '1' for fifo  2 group
-- Returns  { OK, messages that were parked, or -1 when the group was not }, or what lib/status.lua says
-- Keeps    Q1; Q3 receives stay; Q6 the group goes on with the first that waits
-- @include numbers
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
fifo = ARGV[1] == '1'
local group = ARGV[2]
local why = redis.call('HGET', K.parked_why, group)
if not why then
  return { OK, -1 }
end

local function forgive(offset)
  local record = offset >= 0 and record_of(word(offset))
  if record then
    record[FAILURES], record[CRASHES], record[LAST_FAILURE] = 0, 0, record[CONSUMER] and false
    save(word(offset), record)
  end
end

local waiting = redis.call('LLEN', waiting_of(group))
redis.call('ZREM', K.parked, group)
redis.call('HDEL', K.parked_why, group)
count('parked', -waiting)
forgive(cmsgpack.unpack(why)[2])
if may_deliver(group) then
  redis.call('RPUSH', K.turns, group)
end
wake(K.meta)
return { OK, waiting }
