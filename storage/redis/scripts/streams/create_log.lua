-- Make a log, unless it is there or was deleted.
-- KEYS     1 meta
-- ARGV     1 next offset  2 ceiling (offsets below it are reserved)  3 store epoch  4 log epoch
--          5 its children, when Postgres has it closed or about to be; else empty
-- Returns  1 made, 0 it was there, -1 it was deleted
-- Keeps    S1 an offset holds one value for ever: next comes from Postgres's reservation
if redis.call('HEXISTS', KEYS[1], 'deleted') == 1 then
  return -1
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('HSET', KEYS[1], 'next', ARGV[1], 'start', ARGV[1], 'cursor', ARGV[1], 'ceiling', ARGV[2],
  'store_epoch', ARGV[3], 'log_epoch', ARGV[4], 'bytes', '0', 'skipped', ARGV[1])
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[1], 'closed', ARGV[5])
end
return 1
