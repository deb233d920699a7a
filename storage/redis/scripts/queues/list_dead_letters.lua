-- Show dead letters in the order they were sent in.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 show those after this offset  2 how many at most  3 bytes of batches after which no more follow
-- Returns  { OK, the offset to go on after, or -1 when there are no more, letter... }, or what lib/status.lua
--          says. A letter is { offset, arrival ms, receives, failures, crashes, group, died ms, reason, batch, reason
--          and details of its last failure, consumer that received it last or '' }
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
local wanted, bytes_left = tonumber(ARGV[2]), tonumber(ARGV[3])
local answer = { OK, -1 }
for _, offset in ipairs(redis.call('ZRANGEBYSCORE', K.dead, '(' .. ARGV[1], '+inf', 'LIMIT', 0, wanted)) do
  local record, died, reason, batch = unpack(cmsgpack.unpack(redis.call('HGET', K.dead_letters, offset)))
  local last_reason, details = last_failure(record)
  table.insert(answer, { tonumber(offset), record[ARRIVAL], record[RECEIVES] - record[BEFORE], record[FAILURES], record[CRASHES],
    record[GROUP], died, reason, batch, last_reason, details, record[CONSUMER] or '' })
  bytes_left = bytes_left - #batch
  if bytes_left <= 0 or #answer - 2 == wanted then
    answer[2] = tonumber(offset)
    break
  end
end
return answer
