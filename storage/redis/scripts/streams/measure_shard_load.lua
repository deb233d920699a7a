-- How much a log took per second over the last whole window. The first look begins one.
-- KEYS     1 meta
-- ARGV     1 now_ms or empty  2 window ms  3 records and  4 bytes per second below which a log is quiet
-- Returns  { OK, 1, records per second, bytes per second, ms for which it has been quiet }, { OK, 0 } before
--          a window is over, or what lib/status.lua says
-- Keeps    `load`: { begin of the window, next, bytes, log epoch, records and bytes per second of the one
--          before or -1, when it turned quiet }
-- @include numbers
-- @include time
-- @include status
local held = redis.call('HMGET', KEYS[1], 'next', 'bytes', 'log_epoch', 'last_ms', 'load', 'deleted')
local absent = absence(held[6], held[1])
if absent then
  return absent
end
local next_offset, bytes, epoch = tonumber(held[1]), tonumber(held[2]), tonumber(held[3])
local now = now_at(ARGV[1], held[4])
local load = held[5] and cmsgpack.unpack(held[5])
local is_new = not load or load[4] ~= epoch  -- an epoch's jump is no load
if is_new then
  load = { now, next_offset, bytes, epoch, -1, -1, now }
elseif now - load[1] >= tonumber(ARGV[2]) then
  local seconds = (now - load[1]) / 1000
  local records_s = math.floor((next_offset - load[2]) / seconds)
  local bytes_s = math.floor((bytes - load[3]) / seconds)
  local quiet = records_s < tonumber(ARGV[3]) and bytes_s < tonumber(ARGV[4])
  load = { now, next_offset, bytes, epoch, records_s, bytes_s, quiet and load[7] or now }
  is_new = true
end
if is_new then
  redis.call('HSET', KEYS[1], 'load', cmsgpack.pack(load))
end
if load[5] < 0 then
  return { OK, 0 }
end
return { OK, 1, load[5], load[6], now - load[7] }
