-- What a chart shows of a shard, and since when some of its records wait.
-- KEYS     1 log  2 meta
-- ARGV     offsets: the first records that somebody has not read yet, or not archived
-- Returns  { OK, start, next, bytes it ever took, bytes it holds, log epoch, for each offset the arrival in ms of the first
--          record from there on, or -1 when there is none }, or what lib/status.lua says
-- @include numbers
-- @include status
-- @include entries
-- @include archived
-- @include existing_log
local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
local before = tonumber(first and field(first[2], 'c') or bytes)
local answer = { OK, start, next_offset, bytes, bytes - before, tonumber(log_epoch or '0') }
for _, offset in ipairs(ARGV) do
  local arrival = -1
  if tonumber(offset) < next_offset then
    local _, found = bytes_before(log, bytes, math.max(start, tonumber(offset)))
    arrival = found or -1
  end
  answer[#answer + 1] = arrival
end
return answer
