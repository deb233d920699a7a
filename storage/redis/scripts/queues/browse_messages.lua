-- Show messages in the order they were sent in, in the state they have now, which what is due reaches first;
-- takes none.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 to 7 as sweep_queue.lua  8 show those after this offset  9 how many at most  10 'ready',
--          'delayed', 'in_flight', 'parked', or empty for all  11 how many to look at, at most
--          12 bytes of batches after which no more follow
-- Returns  { OK, now_ms, the offset looked at last, or -1 when there are no more, message... }, or what
--          lib/status.lua says. A message is { offset, arrival ms, batch, state, due ms or -1, receives,
--          failures, crashes, first received ms, consumer that received it last or '' }
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include sweep
-- @include existing_queue
local now = now_at(ARGV[1], last_ms)
fifo = ARGV[7] == '1'
if move_due(tonumber(ARGV[2]), now, tonumber(ARGV[5])) > 0 then
  wake(K.meta)
end
count('expired', drop_expired(now, tonumber(ARGV[3]), tonumber(ARGV[6])))

local after, wanted, state_wanted = tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10]
local looks_left, bytes_left = tonumber(ARGV[11]), tonumber(ARGV[12])
local answer, last = { OK, now, -1 }, after

local function state_of(offset)
  for state, key in pairs({ in_flight = K.leases, delayed = K.delayed }) do
    local due = redis.call('ZSCORE', key, offset)
    if due then
      return state, tonumber(due)
    end
  end
  return is_held_back(offset) and 'parked' or 'ready', -1
end

local function wants_more()
  return #answer - 3 < wanted and looks_left > 0 and bytes_left > 0
end

local function look(offset, arrival, batch)
  looks_left, last = looks_left - 1, tonumber(offset)
  local state, due = state_of(offset)
  if state_wanted == '' or state == state_wanted then
    bytes_left = bytes_left - #batch
    local record = record_of(offset) or new_record(arrival, '', #batch)
    table.insert(answer, { last, record[ARRIVAL], batch, state, due, record[RECEIVES] - record[BEFORE],
      record[FAILURES], record[CRASHES], record[FIRST], record[CONSUMER] or '' })
  end
end

-- What left the log before its turn is older than most of what is in it, but need not be older than all.
local function next_kept()
  local found = redis.call('ZRANGEBYSCORE', K.kept, '(' .. word(last), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(found[2]), found[1]
end

local function look_at_kept_before(offset)
  local at, kept = next_kept()
  while at and at < offset and wants_more() do
    local word_of_it = word(at)
    look(word_of_it, 0, string.sub(kept, #word_of_it + 2))
    at, kept = next_kept()
  end
end

local more = true
while more and wants_more() do
  local page = redis.call('XRANGE', K.log, word(last + 1), '+', 'COUNT', 100)
  more = #page == 100
  for _, entry in ipairs(page) do
    local offset, arrival = string.match(entry[1], '^(%d+)-(%d+)$')
    look_at_kept_before(tonumber(offset))
    if not wants_more() then
      more = true
      break
    end
    look(offset, tonumber(arrival), entry[2][2])
  end
end
if not more then
  look_at_kept_before(math.huge)
end
answer[3] = (more or next_kept()) and last or -1
return answer
