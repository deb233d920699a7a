-- Release a lease, if the holder has it, so that another may acquire it at once.
-- KEYS     1 lease: as in acquire_lease
-- ARGV     1 the holder
-- Returns  nothing
-- Keeps    the fencing number, which the next holder raises
if redis.call('HGET', KEYS[1], 'holder') == ARGV[1] then
  redis.call('HSET', KEYS[1], 'expires', '0')
end
return false
