-- Send ready messages on their way to other queues, oldest first, as a move asks, or to a topic as its routes do: then
-- each has the number of its departure, in a sequence that has a name of its own for each life of this queue's state, and
-- none departs before the former ones have arrived, so that they arrive in that sequence.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 how many at most  3 attempts at most, as lib/queue.lua has it  4 retention ms
--          5 due moves at most  6 '1' for fifo  7 move id  8 '1' for routes  9 for routes: bytes of messages after which no more depart
-- Returns  { OK, messages that departed, next due ms or -1, now_ms, for routes: name of the sequence of departures and
--          messages as lib/transfers.lua shows them..., or the former ones that are not cleared }, or what lib/status.lua says. Fewer than asked: no more are ready,
--          or their bytes were reached. Whoever waits is woken when one becomes ready, if none was. Routes take nothing of
--          a queue that is fenced.
-- Keeps    Q1 one state; Q6 a group's messages depart in order, none past one in flight; Q10
-- @include numbers
-- @include time
-- @include status
-- @include history
-- @include queue
-- @include transfers
-- @include use
-- @include existing_queue
fifo = ARGV[6] == '1'
local now = now_at(ARGV[1], last_ms)
local wanted, retention_ms = tonumber(ARGV[2]), tonumber(ARGV[4])
local departed, lapsed = 0, 0
local PAGE = 50
local for_routes, bytes_left, rows = ARGV[8] == '1', tonumber(ARGV[9]) or math.huge, {}
if for_routes then
  if redis.call('HEXISTS', K.meta, 'fence') == 1 then
    return { OK, 0, -1, now, '' }
  end
  if redis.call('ZCOUNT', K.moving, word(ROUTED), '(' .. word(LETTERS)) > 0 then
    local answer = { OK, 0, -1, now, redis.call('HGET', K.meta, 'departures') }
    return add_transfers(answer, word(ROUTED), '(' .. word(LETTERS), -1)
  end
  note_use(redis.call('HGET', K.meta, 'used'), now)
end
local moved = move_due(tonumber(ARGV[3]), now, tonumber(ARGV[5]))

local function leave(offset, record)
  if expired(record, now, retention_ms) then
    forget(offset, record)
    note(offset, 'expired')
    lapsed = lapsed + 1
  else
    local position = for_routes and next_position(ROUTED, now)
    local batch = depart(offset, record, ARGV[7], position and word(position))
    if for_routes then
      rows[#rows + 1] = transfer_row(position, offset, record, batch, ARGV[7])
    end
    departed, bytes_left = departed + 1, bytes_left - #batch
  end
end

local function goes_on()
  return departed < wanted and bytes_left > 0
end

local function returned_ones()
  while goes_on() do
    local offset = redis.call('ZPOPMIN', K.returned)[1]
    if not offset then
      return
    end
    leave(offset, record_of(offset))
  end
end

local function grouped_ones()
  while goes_on() do
    local group = redis.call('LPOP', K.turns)
    local offset = group and redis.call('LPOP', waiting_of(group))
    if not offset then
      return
    end
    if may_deliver(group) then
      redis.call('LPUSH', K.turns, group)
    end
    leave(offset, record_of(offset))
  end
end

local function new_ones()
  local cursor = redis.call('HGET', K.meta, 'cursor')
  while goes_on() and tonumber(cursor) < tonumber(next_offset) do
    local page = redis.call('XRANGE', K.log, cursor, '+', 'COUNT', PAGE)
    if #page == 0 then
      cursor = next_offset
    end
    for _, entry in ipairs(page) do
      if not goes_on() then
        break
      end
      local offset, arrival = string.match(entry[1], '^(%d+)-(%d+)$')
      if entry[2][3] ~= 'x' then
        local record = new_record(tonumber(arrival), '', #entry[2][2])
        record[EXPIRES] = entry[2][3] == 't' and tonumber(entry[2][4]) or 0
        leave(offset, record)
      end
      cursor = word(tonumber(offset) + 1)
    end
  end
  redis.call('HSET', K.meta, 'cursor', cursor)
end

returned_ones()
grouped_ones()
if not fifo then
  new_ones()
end
count('expired', lapsed)
if for_routes and departed == 0 then
  redis.call('HSET', K.meta, 'waiting', '1')
end
local answer = { OK, departed, moved >= tonumber(ARGV[5]) and now or next_due(), now }
if for_routes then
  answer[5] = redis.call('HGET', K.meta, 'departures') or ''
  for _, row in ipairs(rows) do
    answer[#answer + 1] = row
  end
end
return answer
