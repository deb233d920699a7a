-- Read a group's offsets.
-- KEYS     1 offsets: as lib/group_offsets.lua has it
-- Returns  { field, value, … }; nothing where there are none
return redis.call('HGETALL', KEYS[1])
