-- Change what a message holds, wherever it waits: ready, delayed, parked or dead-lettered. Its place, its counts and its
-- times stay.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 offset  2 the batch v1 that takes the place of the one it has  3 now_ms or empty
-- Returns  { OK, DONE, or GONE, or OUT when it is in flight }, or what lib/status.lua says
-- Keeps    Q1 one state
-- @include numbers
-- @include time
-- @include status
-- @include notify
-- @include history
-- @include queue
-- @include sweep
-- @include existing_queue
local DONE, GONE, OUT = 0, 1, 2

local offset, batch = ARGV[1], ARGV[2]
now_at(ARGV[3], last_ms)

local function replace_dead_letter()
  local packed = redis.call('HGET', K.dead_letters, offset)
  if not packed then
    return GONE
  end
  local letter = cmsgpack.unpack(packed)
  letter[4] = batch
  redis.call('HSET', K.dead_letters, offset, cmsgpack.pack(letter))
  return DONE
end

-- An entry of a log cannot change: what takes its place is kept beside it.
local function take_out_of_the_log_or_keep(record)
  if redis.call('XDEL', K.log, entry_id(offset, record)) == 1 then
    redis.call('ZADD', K.aged, 'NX', word(record[RENEWED] > 0 and record[RENEWED] or record[ARRIVAL]), offset)
  else
    keep_no_more(offset)
  end
end

local function replace()
  if redis.call('ZSCORE', K.leases, offset) then
    return OUT
  end
  local record = record_of(offset)
  if not record then
    record = take_out_of_the_log(offset)
    if not record then
      return replace_dead_letter()
    end
    make_ready(offset, record)
  end
  take_out_of_the_log_or_keep(record)
  keep(offset, batch)
  count('bytes_gone', record[SIZE] - #batch)
  record[SIZE] = #batch
  save(offset, record)
  return DONE
end

local result = replace()
if result == DONE then
  note(offset, 'changed')
end
return { OK, result }
