-- Show the messages that are on their way from this queue to another, in the order they were sent in.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 how many at most
-- Returns  { OK, { offset, arrival ms, group, receives, first received ms, batch, move id or empty,
--          priority }... }, or
--          what lib/answers.lua says
-- @include answers
-- @include queue
local held = redis.call('HMGET', K.meta, 'next', 'deleted')
if held[2] then
  return { DELETED }
elseif not held[1] then
  return { UNKNOWN_LOG }
end
local offsets = redis.call('HKEYS', K.moving)
table.sort(offsets, function(one, other)
  return tonumber(one) < tonumber(other)
end)
local answer = { OK }
for index = 1, math.min(#offsets, tonumber(ARGV[1])) do
  local record, _, batch, move_id = unpack(cmsgpack.unpack(redis.call('HGET', K.moving, offsets[index])))
  table.insert(answer, { tonumber(offsets[index]), record[ARRIVAL], record[GROUP], record[RECEIVES] - record[BEFORE],
    record[FIRST], batch, move_id, record[PRIORITY] })
end
return answer
