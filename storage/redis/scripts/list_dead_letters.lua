-- Show dead letters in the order they were sent in.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 show those after this offset  2 how many at most
-- Returns  { OK, { offset, arrival ms, receives, failures, crashes, group, died ms, reason, batch }... },
--          or what lib/answers.lua says
-- @include answers
-- @include history
-- @include queue
local held = redis.call('HMGET', K.meta, 'next', 'deleted')
if held[2] then
  return { DELETED }
elseif not held[1] then
  return { UNKNOWN_LOG }
end
local answer = { OK }
for _, offset in ipairs(redis.call('ZRANGEBYSCORE', K.dead, '(' .. ARGV[1], '+inf', 'LIMIT', 0, ARGV[2])) do
  local record, died, reason, batch = unpack(cmsgpack.unpack(redis.call('HGET', K.dead_letters, offset)))
  table.insert(answer, { tonumber(offset), record[ARRIVAL], record[RECEIVES] - record[BEFORE], record[FAILURES], record[CRASHES],
    record[GROUP], died, reason, batch })
end
return answer
