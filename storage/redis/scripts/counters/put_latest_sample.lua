-- Keep what was last measured of some resources, by name.
-- KEYS     1 latest: a hash by name
-- ARGV     1 how many names are gone  2.. these  then name and sample of each that changed
-- Returns  how many names are kept now
local gone = tonumber(ARGV[1])
if gone > 0 then
  redis.call('HDEL', KEYS[1], unpack(ARGV, 2, 1 + gone))
end
if #ARGV > 1 + gone then
  redis.call('HSET', KEYS[1], unpack(ARGV, 2 + gone))
end
return redis.call('HLEN', KEYS[1])
