-- Ends the script with the status of a log that does not exist. Gives its extent, and further fields of its meta as
-- they are stored. The last include: it needs status.
local log, meta = KEYS[1], KEYS[2]
local held = redis.call('HMGET', meta, 'next', 'start', 'bytes', 'last_ms', 'closed', 'log_epoch', 'deleted')
local absent = absence(held[7], held[1])
if absent then
  return absent
end
local next_offset, start, bytes = tonumber(held[1]), tonumber(held[2]), tonumber(held[3])
local last_ms, closed, log_epoch = held[4], held[5], held[6]
