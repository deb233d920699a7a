-- Publish the activity of consumers of a queue at one process.
-- KEYS     1 zset: consumers by their last receive, ms  2 hash: consumer and process -> report
-- ARGV     1 how long reports are kept, ms  2 consumers at most; the longest inactive are removed
--          then four for each report: last receive ms, consumer, consumer and process, report
-- Returns  nothing of use
-- Keeps    nothing: no decision depends on reports
local seen, reports = KEYS[1], KEYS[2]
for at = 3, #ARGV, 4 do
  redis.call('ZADD', seen, 'GT', ARGV[at], ARGV[at + 1])
  redis.call('HSET', reports, ARGV[at + 2], ARGV[at + 3])
end
redis.call('PEXPIRE', seen, ARGV[1])
redis.call('PEXPIRE', reports, ARGV[1])
local consumers_max = tonumber(ARGV[2])
local over = redis.call('ZCARD', seen) - consumers_max
local over_of_processes = redis.call('HLEN', reports) - 4 * consumers_max  -- each may be at several processes
if over <= 0 and over_of_processes <= 0 then
  return
end

-- Half of them go at once, so that this is rare.
local gone = {}
for _, consumer in ipairs(redis.call('ZPOPMIN', seen, math.floor(consumers_max / 2))) do
  gone[consumer] = true
end
for _, field in ipairs(redis.call('HKEYS', reports)) do
  if gone[string.sub(field, 1, 6)] then
    redis.call('HDEL', reports, field)
  end
end
