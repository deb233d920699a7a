-- Show the messages that are on their way from this queue to another, in the order they were sent in, or those that
-- routes take, in the order of their departures.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 how many at most  2 '1': those that routes take
-- Returns  { OK, name of the sequence of departures, { position, offset, arrival ms, group, receives,
--          first received ms, batch, move id or empty, priority, expires ms or 0, failures, crashes,
--          reason of its departure, reason and details of its last failure }... },
--          or what lib/status.lua says
-- @include numbers
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
local first, last = '-inf', '(' .. word(ROUTED)
if ARGV[2] == '1' then
  first, last = word(ROUTED), '+inf'
end
local moving = redis.call('ZRANGEBYSCORE', K.moving, first, last, 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[1]))
local answer = { OK, redis.call('HGET', K.meta, 'departures') or '' }
for index = 1, #moving, 2 do
  local offset, record, batch, move_id = unpack(cmsgpack.unpack(moving[index]))
  table.insert(answer, { tonumber(moving[index + 1]), tonumber(offset), record[ARRIVAL], record[GROUP],
    record[RECEIVES] - record[BEFORE], record[FIRST], batch, move_id, record[PRIORITY], record[EXPIRES],
    record[FAILURES], record[CRASHES], departure_reason(record),
    last_failure(record) })
end
return answer
