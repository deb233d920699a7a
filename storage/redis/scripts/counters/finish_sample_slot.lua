-- Say that a slot of the time series is measured, if it is still the one that its process took.
-- KEYS     1 tick, as claim_sample_slot.lua has it
-- ARGV     1 the slot  2 who took it
-- Returns  1, or 0 when another process has taken a later one
local held = redis.call('HMGET', KEYS[1], 'taken', 'owner')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], 'done', ARGV[1])
return 1
