-- Reserve time for something that many do together at one rate: each is told how long to wait before it does its part.
-- KEYS     1 pace: a hash of when the time that is reserved so far ends, by what is paced
-- ARGV     1 how long a pace is kept that nobody uses, ms
--          then two for each thing that is paced: its name, and how long its part takes at its rate, microseconds
-- Returns  { how long to wait, ms }
-- Keeps    nothing: a pace that is lost begins anew
-- @include numbers
local PER_MS = 1000
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local wait = 0
for index = 2, #ARGV, 2 do
  local ends = tonumber(redis.call('HGET', KEYS[1], ARGV[index]) or '0')
  local begins = math.max(ends, now)
  wait = math.max(wait, begins - now)
  redis.call('HSET', KEYS[1], ARGV[index], word(begins + tonumber(ARGV[index + 1])))
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return { math.ceil(wait / PER_MS) }
