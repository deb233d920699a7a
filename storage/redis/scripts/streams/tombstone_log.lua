-- Delete a log and leave a tombstone, so that a process with a stale definition cannot make it anew.
-- KEYS     1 meta  2.. every other key of the log
-- Returns  1
-- Frees    the memory in the background; groups' lists are named by the keys that are read here
local prefix = string.sub(KEYS[1], 1, -5)
local groups = redis.call('HKEYS', prefix .. 'groups')
local turns = redis.call('LRANGE', prefix .. 'turns', 0, -1)
local parked = redis.call('ZRANGE', prefix .. 'parked', 0, -1)
for _, names in ipairs({ groups, turns, parked }) do
  for _, group in ipairs(names) do
    redis.call('UNLINK', prefix .. 'group:' .. group)
  end
end
for _, key in ipairs(KEYS) do
  redis.call('UNLINK', key)
end
redis.call('HSET', KEYS[1], 'deleted', '1')
redis.call('PUBLISH', 'ms:wake', string.match(KEYS[1], '{(.-)}'))
return 1
