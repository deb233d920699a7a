#!lua flags=allow-oom
-- Replace a group's offsets by those of its rows, once these are committed, and accept commits again.
-- KEYS     1 offsets: as lib/group_offsets.lua has it
-- ARGV     1 store epoch of the caller  2 time to live, ms  3 the fence by which it froze the group  4 generation
--          then two for each shard: shard, entry
-- Returns  { OK, 1, or 0 where another caller has frozen it since or it was lost: it stays as it is }
-- Keeps    G1: a caller that was suspended after its commit does not undo a later change of leases
-- @include status
local PAIRS_MAX = 2000  -- fewer than Lua can pass at once
local state = redis.call('HMGET', KEYS[1], 'fence', 'epoch')
if state[1] ~= ARGV[3] then
  return { OK, 0 }
end
local epoch = ARGV[1]
if tonumber(state[2] or '0') > tonumber(epoch) then
  epoch = state[2]
end
redis.call('UNLINK', KEYS[1])
redis.call('HSET', KEYS[1], 'generation', ARGV[4], 'epoch', epoch)
for first = 5, #ARGV, PAIRS_MAX do
  redis.call('HSET', KEYS[1], unpack(ARGV, first, math.min(first + PAIRS_MAX - 1, #ARGV)))
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return { OK, 1 }
