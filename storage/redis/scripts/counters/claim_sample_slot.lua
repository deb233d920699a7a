-- Take a slot of the time series, which one process measures. Where two want it, the second gets nothing.
-- KEYS     1 tick: a hash of the slot that was taken last, by whom, and the last that was finished
-- ARGV     1 the slot  2 who takes it  3 slots that one which was taken may lie ahead: a clock that went wrong does not end
--          all measuring
-- Returns  { 1 if it is taken now, who had the one before or empty, the slot that was taken before or -1, the one that was
--          finished last or -1 }
local held = redis.call('HMGET', KEYS[1], 'taken', 'owner', 'done')
local slot, taken = tonumber(ARGV[1]), tonumber(held[1] or '-1')
local done = tonumber(held[3] or '-1')
if taken >= slot and taken - slot <= tonumber(ARGV[3]) then
  return { 0, held[2] or '', taken, done }
end
redis.call('HSET', KEYS[1], 'taken', ARGV[1], 'owner', ARGV[2])
return { 1, held[2] or '', taken, done }
