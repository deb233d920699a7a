-- Make dead letters ready again in their own queue, oldest first, as if just sent: counts start anew, and
-- so does the retention.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 how many at most  3 '1' for fifo  4 look at those after this offset
--          5 how many to look at, at most  6 only with this reason, or empty  7 only of this group, or empty
--          8.. only these offsets; none: all
-- Returns  { OK, redriven, the offset looked at last, or -1 when there are no more }, or what lib/status.lua
--          says
-- Keeps    Q1 one state; Q3 a redrive starts anew; Q6 a group's message goes back before its later ones
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
fifo = ARGV[3] == '1'
local now = now_at(ARGV[1], last_ms)

local chosen = #ARGV > 7 and {}
for index = 8, #ARGV do
  chosen[ARGV[index]] = true
end

local function is_wanted(offset, record, reason)
  return (ARGV[6] == '' or reason == ARGV[6]) and (ARGV[7] == '' or record[GROUP] == ARGV[7])
    and (not chosen or chosen[offset])
end

local function revive(offset, record, batch)
  local fresh = new_record(record[ARRIVAL], record[GROUP], #batch)
  fresh[RECEIVES], fresh[BEFORE], fresh[PRIORITY] = record[RECEIVES], record[RECEIVES], record[PRIORITY]
  renew(offset, fresh, now)
  redis.call('ZREM', K.dead, offset)
  redis.call('ZREM', K.dead_due, offset)
  redis.call('HDEL', K.dead_letters, offset)
  keep(offset, batch)
  count('bytes_gone', -#batch)
  note(offset, 'redriven')
  save(offset, fresh)
  make_ready(offset, fresh)
end

local wanted, looks = tonumber(ARGV[2]), tonumber(ARGV[5])
local redriven, last = 0, -1
local offsets = redis.call('ZRANGEBYSCORE', K.dead, '(' .. ARGV[4], '+inf', 'LIMIT', 0, looks)
for _, offset in ipairs(offsets) do
  if redriven == wanted then
    break
  end
  local record, _, reason, batch = unpack(cmsgpack.unpack(redis.call('HGET', K.dead_letters, offset)))
  if is_wanted(offset, record, reason) then
    revive(offset, record, batch)
    redriven = redriven + 1
  end
  last = tonumber(offset)
end
if redriven > 0 then
  wake(K.meta)
end
return { OK, redriven, (#offsets == looks or redriven == wanted) and last or -1 }
