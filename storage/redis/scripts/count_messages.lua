-- Count a queue's messages by state, exactly, as of now: what is due moves first.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 to 7 as tidy_queue.lua
-- Returns  { OK, ready, delayed, in flight, dead-lettered, sent, deduplicated, acknowledged, expired, purged,
--          receives, bytes sent, arrival of the oldest ready message in ms or -1, moving, moved in, moved out, parked,
--          dropped, bytes held }, or what lib/answers.lua says
-- Keeps    Q10: sent + moved in is the sum of the states and of what is gone, each counted on its own
-- @include numbers
-- @include time
-- @include wake
-- @include answers
-- @include history
-- @include queue
-- @include tidy
local OLDEST_LOOKED_AT, PRIORITY_MAX = 100, 9

fifo = ARGV[7] == '1'
local held = redis.call('HMGET', K.meta, 'next', 'last_ms', 'deleted')
if held[3] then
  return { DELETED }
elseif not held[1] then
  return { UNKNOWN_LOG }
end
local now = now_at(ARGV[1], held[2])
if move_due(tonumber(ARGV[2]), now, tonumber(ARGV[5])) > 0 then
  wake(K.meta)
end
count('expired', drop_expired(now, tonumber(ARGV[3]), tonumber(ARGV[6]))
  + drop_old_dead(now, tonumber(ARGV[4]), tonumber(ARGV[6])))

local delayed = redis.call('ZCOUNT', K.delayed, '(' .. word(now), '+inf')
local in_flight = redis.call('ZCOUNT', K.leases, '(' .. word(now), '+inf')
local living = redis.call('XLEN', K.log) + redis.call('ZCARD', K.kept)

-- The first message from `offset` that waits: neither in flight nor delayed nor parked.
local function oldest_from(offset)
  for _, entry in ipairs(redis.call('XRANGE', K.log, offset, '+', 'COUNT', OLDEST_LOOKED_AT)) do
    local at, arrival = string.match(entry[1], '^(%d+)-(%d+)$')
    if not redis.call('ZSCORE', K.leases, at) and not redis.call('ZSCORE', K.delayed, at) and not is_held_back(at) then
      return tonumber(arrival)
    end
  end
  return -1
end

local meta = redis.call('HMGET', K.meta, 'deduplicated', 'acknowledged', 'expired', 'purged', 'receives', 'bytes',
  'cursor', 'skipped', 'moved_in', 'moved_out', 'parked', 'dropped', 'bytes_gone')
for index = 1, 13 do
  meta[index] = tonumber(meta[index] or '0')
end
local oldest = oldest_from(word(redis.call('EXISTS', K.turns) == 1 and 0 or meta[7]))
for priority = 0, PRIORITY_MAX do
  local from = word(-priority * LEVEL)
  local first = redis.call('ZRANGEBYSCORE', K.returned, from, word((1 - priority) * LEVEL), 'LIMIT', 0, 1)[1]
  if first then
    local arrival = record_of(first)[ARRIVAL]
    oldest = oldest < 0 and arrival or math.min(oldest, arrival)
  end
end
return { OK, living - delayed - in_flight - meta[11], delayed, in_flight, redis.call('ZCARD', K.dead),
  tonumber(held[1]) - meta[8] - meta[9], meta[1], meta[2], meta[3], meta[4], meta[5], meta[6], oldest,
  redis.call('ZCARD', K.moving), meta[9], meta[10], meta[11], meta[12], meta[6] - meta[13] }
