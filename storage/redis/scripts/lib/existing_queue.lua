-- Ends the script with the status of a queue that does not exist. Gives the next offset and the arrival of the last
-- message, both as the meta has them. The last include: it needs queue and status.
local next_offset, last_ms, deleted = unpack(redis.call('HMGET', K.meta, 'next', 'last_ms', 'deleted'))
local absent = absence(deleted, next_offset)
if absent then
  return absent
end
