-- Forget messages that have arrived in another queue, or make them ready again because they cannot.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 '1' for fifo  2 '1': make them ready again  3 now_ms or empty  4.. offsets
-- Returns  { OK, how many were still moving }, or what lib/status.lua says
-- Keeps    Q1 one state; Q5 nothing accepted is lost; Q10: what has left counts as moved out
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
local FIRST_OFFSET = 4

fifo = ARGV[1] == '1'

now_at(ARGV[3], last_ms)

local function put_back(packed)
  local offset, record, batch = unpack(cmsgpack.unpack(packed))
  keep(offset, batch)
  count('bytes_gone', -record[SIZE])
  renew(offset, record, record[RENEWED] > 0 and record[RENEWED] or record[ARRIVAL])
  if record[EXPIRES] > 0 then
    redis.call('ZADD', K.expiring, word(record[EXPIRES]), offset)
  end
  save(offset, record)
  make_ready(offset, record)
end

local cleared = 0
for index = FIRST_OFFSET, #ARGV do
  local packed = redis.call('ZRANGEBYSCORE', K.moving, ARGV[index], ARGV[index])[1]
  if packed then
    redis.call('ZREM', K.moving, packed)
    cleared = cleared + 1
    note(ARGV[index], ARGV[2] == '1' and 'put_back' or 'moved_out')
    if ARGV[2] == '1' then
      put_back(packed)
    end
  end
end
if ARGV[2] == '1' then
  wake(K.meta)
else
  count('moved_out', cleared)
end
return { OK, cleared }
