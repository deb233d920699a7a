-- What was last measured, of all resources or of some.
-- KEYS     1 latest, as put_latest_sample.lua has it
-- ARGV     names, or none for all
-- Returns  a sample or nil for each name; for all, each name and its sample
if #ARGV == 0 then
  return redis.call('HGETALL', KEYS[1])
end
return redis.call('HMGET', KEYS[1], unpack(ARGV))
