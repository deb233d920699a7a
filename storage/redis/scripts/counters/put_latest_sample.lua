-- Store the last samples of some resources by name, and the totals that include them, unless another sampler took over.
-- KEYS     1 tick, as claim_sample_slot.lua has it  2 latest: a hash by name  3 totals: a hash by namespace
-- ARGV     1 the sampler  2 number of names to delete  3.. these  then twice the number of totals, name and total of each,
--          then name and sample of each that changed
-- Returns  1, or 0 when another sampler has claimed a slot since
-- Keeps    a total counts each increase once: it changes with the samples that it includes, or not at all
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
  return 0
end
local deleted = 2 + tonumber(ARGV[2])
if deleted > 2 then
  redis.call('HDEL', KEYS[2], unpack(ARGV, 3, deleted))
end
local totals = deleted + 1 + tonumber(ARGV[deleted + 1])
if totals > deleted + 1 then
  redis.call('HSET', KEYS[3], unpack(ARGV, deleted + 2, totals))
end
if #ARGV > totals then
  redis.call('HSET', KEYS[2], unpack(ARGV, totals + 1))
end
return 1
