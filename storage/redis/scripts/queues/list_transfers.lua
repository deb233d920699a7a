-- Show the messages that are on their way from this queue to another, in the order they were sent in.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 how many at most
-- Returns  { OK, { offset, arrival ms, group, receives, first received ms, batch, move id or empty,
--          priority, failures, crashes, reason of its departure, reason and details of its last failure }... },
--          or what lib/status.lua says
-- @include numbers
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
local answer = { OK }
for _, packed in ipairs(redis.call('ZRANGE', K.moving, 0, tonumber(ARGV[1]) - 1)) do
  local offset, record, batch, move_id = unpack(cmsgpack.unpack(packed))
  table.insert(answer, { tonumber(offset), record[ARRIVAL], record[GROUP], record[RECEIVES] - record[BEFORE],
    record[FIRST], batch, move_id, record[PRIORITY], record[FAILURES], record[CRASHES], departure_reason(record),
    last_failure(record) })
end
return answer
