-- Show the groups that are parked, by name.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 show those after this name, or empty  2 how many at most
-- Returns  { OK, { group, parked ms, offset of the message to blame or -1, reason, messages that wait, offset of the
--          first of them or -1 }... }, or what lib/status.lua says
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
local answer = { OK }
local after = ARGV[1] == '' and '-' or '(' .. ARGV[1]
for _, group in ipairs(redis.call('ZRANGEBYLEX', K.parked, after, '+', 'LIMIT', 0, ARGV[2])) do
  local parked, offset, reason = unpack(cmsgpack.unpack(redis.call('HGET', K.parked_why, group)))
  local waiting = waiting_of(group)
  table.insert(answer, { group, parked, offset, reason, redis.call('LLEN', waiting),
    tonumber(redis.call('LINDEX', waiting, 0) or -1) })
end
return answer
