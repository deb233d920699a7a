-- Claim a slot of the time series, which one sampler measures.
-- KEYS     1 tick: a hash of the slot that was claimed last, and by which sampler
-- ARGV     1 the slot  2 the sampler  3 slots that the last claim may lie ahead: a clock that went wrong does not end
--          all measuring
-- Returns  0 for a slot that is claimed, else 1, or 2 when the same sampler has the claim before
local claim = redis.call('HMGET', KEYS[1], 'taken', 'owner')
local slot, taken = tonumber(ARGV[1]), tonumber(claim[1] or '-1')
if taken >= slot and taken - slot <= tonumber(ARGV[3]) then
  return 0
end
redis.call('HSET', KEYS[1], 'taken', ARGV[1], 'owner', ARGV[2])
return claim[2] == ARGV[2] and 2 or 1
