-- Forget messages that have arrived in another queue, or make them ready again because they cannot, or dead letters.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 '1' for fifo  2 empty: they have arrived; '1': make them ready again; else the reason of dead letters
--          3 now_ms or empty  4.. positions, as list_transfers.lua shows them
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

local now = now_at(ARGV[3], last_ms)
local PUT_BACK = '1'

local function take_back(packed)
  local offset, record, batch = unpack(cmsgpack.unpack(packed))
  keep(offset, batch)
  count('bytes_gone', -record[SIZE])
  return offset, record
end

local function put_back(offset, record)
  note(offset, 'put_back')
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
    if ARGV[2] == '' then
      note(cmsgpack.unpack(packed)[1], 'moved_out')
    elseif ARGV[2] == PUT_BACK then
      put_back(take_back(packed))
    else
      local offset, record = take_back(packed)
      bury(offset, record, ARGV[2], 'rejected', now)
    end
  end
end
if ARGV[2] == PUT_BACK then
  wake(K.meta)
elseif ARGV[2] == '' then
  count('moved_out', cleared)
end
return { OK, cleared }
