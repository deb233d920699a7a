-- Take in messages that come from another queue; each once, however often it is brought.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 store epoch  3 '1' for fifo  4 how long an arrival is remembered, ms
--          5 '1': shown as a stream
--          then three for each message: "<log id> <offset>" it comes from, a batch v1, and
--          MessagePack { arrival ms, renewed ms or 0 for now or -1 for never, group, receives, first received ms,
--          priority }
-- Returns  { OK, now_ms, offsets left below the ceiling, next offset }, or what lib/status.lua says
-- Keeps    Q5 nothing accepted is lost; Q6 a group's messages in the order they are brought; Q9 one copy; S1, S2
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include writable
-- @include two_generations
-- @include history
-- @include queue
-- @include view
local FIRST_MESSAGE, MESSAGE_ARGS = 6, 3

fifo = ARGV[3] == '1'
local held = redis.call('HMGET', K.meta, 'next', 'ceiling', 'store_epoch', 'deleted', 'last_ms', 'view',
  'history', 'fence')
local wanted = (#ARGV - FIRST_MESSAGE + 1) / MESSAGE_ARGS
local refused = refusal(held[1], held[2], held[3], held[4], ARGV[2], wanted)
if refused then
  return refused
elseif held[8] then
  return { FENCED }
end
local now = now_at(ARGV[1], held[5])
local next_offset, bytes = tonumber(held[1]), 0
noted_max = held[7]
local has_view = held[6]
if ARGV[5] == '1' and not has_view then
  begin_view(held[1])
  has_view = true
end

local function add(batch, packed, source)
  local arrival, renewed, group, receives, first, priority = unpack(cmsgpack.unpack(packed))
  local offset, record = word(next_offset), new_record(arrival, group, #batch)
  renew(offset, record, renewed < 0 and arrival or now)
  record[RECEIVES], record[FIRST], record[PRIORITY] = receives, first, priority
  redis.call('XADD', K.log, offset .. '-' .. word(arrival), 'd', batch, 'x', '1')
  save(offset, record)
  note(offset, 'moved_in', 0, receives, source)
  if has_view then
    add_to_view(offset .. '-' .. word(now), batch)
  end
  if group == '' then
    make_ready(offset, record)
  elseif join_group(group, { offset }) then
    redis.call('RPUSH', K.turns, group)
  end
  next_offset = next_offset + 1
  bytes = bytes + #batch
end

for index = FIRST_MESSAGE, #ARGV, MESSAGE_ARGS do
  if not recall(K.arrived, K.arrived_old, ARGV[index]) then
    -- 1e9 items: an arrival that is forgotten early could come again.
    remember(K.meta, K.arrived, K.arrived_old, 'arrived_since', now, tonumber(ARGV[4]), 1e9, ARGV[index],
      word(next_offset))
    add(ARGV[index + 1], ARGV[index + 2], ARGV[index])
  end
end

local added = next_offset - tonumber(held[1])
if added > 0 then
  redis.call('HSET', K.meta, 'next', word(next_offset), 'last_ms', word(now))
  redis.call('HINCRBY', K.meta, 'bytes', bytes)
  count('moved_in', added)
  wake(K.meta)
  end_view(next_offset, now)
end
return { OK, now, tonumber(held[2]) - next_offset, next_offset }
