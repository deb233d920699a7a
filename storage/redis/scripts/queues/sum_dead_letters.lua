-- Count dead letters by reason.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 look at those after this offset  2 how many to look at, at most
-- Returns  { OK, the offset looked at last, or -1 when there are no more, { reason, count, first died ms, last
--          died ms }... }, or what lib/status.lua says
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
local looks, by_reason = tonumber(ARGV[2]), {}
local offsets = redis.call('ZRANGEBYSCORE', K.dead, '(' .. ARGV[1], '+inf', 'LIMIT', 0, looks)
for _, offset in ipairs(offsets) do
  local _, died, reason = unpack(cmsgpack.unpack(redis.call('HGET', K.dead_letters, offset)))
  local sum = by_reason[reason] or { reason, 0, died, died }
  sum[2], sum[3], sum[4] = sum[2] + 1, math.min(sum[3], died), math.max(sum[4], died)
  by_reason[reason] = sum
end
local answer = { OK, #offsets == looks and tonumber(offsets[looks]) or -1 }
for _, sum in pairs(by_reason) do
  table.insert(answer, sum)
end
return answer
