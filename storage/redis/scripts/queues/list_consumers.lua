-- Return the reports on a queue's consumers, and which of them has how many messages in flight.
-- KEYS     as lib/queue.lua names them, then those of report_consumers.lua
-- ARGV     1 now_ms or empty  2 how many messages in flight to look at, at most
-- Returns  { OK, messages in flight, how many were looked at, { consumer, its messages... }, { report... } }, or what
--          lib/status.lua says
-- @include numbers
-- @include time
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
local reports = KEYS[33]
local now = now_at(ARGV[1], last_ms)
local since = '(' .. word(now)
local offsets = redis.call('ZRANGEBYSCORE', K.leases, since, '+inf', 'LIMIT', 0, ARGV[2])

local PAGE = 1000
local by_consumer, counts = {}, {}
for first = 1, #offsets, PAGE do
  local page = redis.call('HMGET', K.records, unpack(offsets, first, math.min(first + PAGE - 1, #offsets)))
  for _, packed in ipairs(page) do
    local consumer = packed and consumer_in(packed)
    if consumer then
      by_consumer[consumer] = (by_consumer[consumer] or 0) + 1
    end
  end
end
for consumer, count_of_it in pairs(by_consumer) do
  counts[#counts + 1] = consumer
  counts[#counts + 1] = count_of_it
end
return { OK, redis.call('ZCOUNT', K.leases, since, '+inf'), #offsets, counts, redis.call('HVALS', reports) }
