-- A sweep's visit to a queue: what is due moves, what has expired goes, stragglers leave the log.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 attempts at most, as lib/queue.lua has it  3 retention ms  4 dead-letter retention ms
--          5 due moves at most  6 messages to drop at most  7 '1' for fifo  8 events of its history at most, 0 for no history
-- Returns  { OK, pieces of work done, 0 when there is none left; messages on their way to another queue; 1 if the queue is
--          shown as a stream }, or what lib/status.lua says
-- Keeps    Q1 one state; Q8 never early; Q10: what is dropped counts as expired
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include changes
-- @include queue
-- @include sweep
fifo = ARGV[7] == '1'
local held = redis.call('HMGET', K.meta, 'next', 'last_ms', 'deleted', 'view', 'history', 'changes', 'changes_until')
local absent = absence(held[3], held[1])
if absent then
  return absent
end
local now = now_at(ARGV[1], held[2])
keep_history(held[5], ARGV[8])
if held[6] and tonumber(held[7] or '0') < now then
  redis.call('HSET', K.meta, 'changes_ended', held[6])
  redis.call('HDEL', K.meta, 'changes', 'changes_until')
  redis.call('UNLINK', CHANGES)
end
local moved = move_due(tonumber(ARGV[2]), now, tonumber(ARGV[5]))
local dropped = drop_expired(now, tonumber(ARGV[3]), tonumber(ARGV[6]))
  + drop_old_dead(now, tonumber(ARGV[4]), tonumber(ARGV[6]))
count('expired', dropped)
if moved > 0 then
  wake(K.meta)
end
return { OK, moved + dropped + keep_stragglers(tonumber(held[1])), redis.call('ZCARD', K.moving), held[4] and 1 or 0 }
