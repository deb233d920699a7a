#!lua flags=allow-oom
-- Freeze a group's offsets before its leases change, and return them: nothing is committed until they are seeded.
-- KEYS     1 offsets: as lib/group_offsets.lua has it
-- ARGV     1 store epoch, not used  2 time to live, ms
--          3 fence: a random text of the caller, who holds the lock on the group's row
-- Returns  { field, value, … } as they are now
-- Keeps    G1: only the caller that froze a group last may seed it
redis.call('HSET', KEYS[1], 'fence', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('HGETALL', KEYS[1])
