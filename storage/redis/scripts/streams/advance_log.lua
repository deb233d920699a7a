-- Take a log into a new store epoch: its next offset jumps to the ceiling that was reserved before, so
-- that no offset which may have been handed out is handed out again. The jump is a hole.
-- KEYS     1 meta
-- ARGV     1 next offset  2 ceiling  3 store epoch  4 log epoch  5 its children, as for create_log
-- Returns  1 advanced, 0 another caller did it before, -1 no such log
-- Keeps    S1 an offset holds one value for ever; S2 offsets rise
local epoch = redis.call('HGET', KEYS[1], 'store_epoch')
if not epoch then
  return -1
end
if tonumber(epoch) >= tonumber(ARGV[3]) then
  return 0
end
local before = tonumber(redis.call('HGET', KEYS[1], 'next'))
local next_offset = math.max(before, tonumber(ARGV[1]))
redis.call('HINCRBY', KEYS[1], 'skipped', string.format('%.0f', next_offset - before))
redis.call('HSET', KEYS[1], 'next', string.format('%.0f', next_offset), 'ceiling', ARGV[2],
  'store_epoch', ARGV[3], 'log_epoch', ARGV[4])
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[1], 'closed', ARGV[5])
end
return 1
