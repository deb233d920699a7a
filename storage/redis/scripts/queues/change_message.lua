-- Change when a message that waits is due, or its priority.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 offset  3 delay from now in ms, or -1 to leave it  4 priority, or -1 to leave it
-- Returns  { OK, DONE, or GONE, or OUT when it is in flight }, or what lib/status.lua says
-- Keeps    Q1 one state; Q8 never early
-- Not for  fifo queues, where a message has its place
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include sweep
-- @include existing_queue
local DONE, GONE, OUT = 0, 1, 2

local now = now_at(ARGV[1], last_ms)
local offset, delay_ms, priority = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local function change()
  if redis.call('ZSCORE', K.leases, offset) then
    return OUT
  end
  local record = record_of(offset)
  local due = redis.call('ZSCORE', K.delayed, offset)
  if record then
    detach(offset, record)
  else
    record = take_out_of_the_log(offset)
  end
  if not record then
    return GONE
  end
  record[PRIORITY] = priority < 0 and record[PRIORITY] or priority
  save(offset, record)
  due = delay_ms < 0 and tonumber(due or now) or now + delay_ms
  if due > now then
    redis.call('ZADD', K.delayed, word(due), offset)
    note(offset, 'changed', due)
  else
    note(offset, 'changed')
    make_ready(offset, record)
  end
  wake(K.meta)
  return DONE
end

return { OK, change() }
