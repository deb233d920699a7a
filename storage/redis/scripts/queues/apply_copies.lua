-- Make a copy of another deployment's queue what that one is now, step by step, and note how far it is.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 store epoch  3 '1' for fifo  4 '1': shown as a stream  5 session  6 position that is
--          reached, or empty to leave it  7 next offset to copy, or -1 to leave it  8 messages to drop at most
--          then two for each step: MessagePack with offsets of the other queue, and a batch v1 or empty
--            { 'put', '1' if it replaces what is here, a message as export_messages.lua has it but for its batch }
--            { 'drop', offset... }
--            { 'only', '1' for dead letters, after offset, until offset or -1 for no end, offset... }: drop others
-- Returns  { OK, now_ms, 0 applied, 1 superseded by another session, 2 not all of a step was applied: again; offsets left below
--          the ceiling; next offset; messages added }, or what lib/status.lua says
-- Keeps    Q1 one state; Q5; Q6 a group's messages in the order they have there; Q9 one copy; S1, S2
-- @include numbers
-- @include time
-- @include status
-- @include writable
-- @include history
-- @include queue
-- @include sweep
-- @include drop
-- @include view
-- @include copies
local APPLIED, SUPERSEDED, UNFINISHED, FIRST_STEP, PAGE = 0, 1, 2, 9, 1000

fifo = ARGV[3] == '1'
local held = redis.call('HMGET', K.meta, 'next', 'ceiling', 'store_epoch', 'deleted', 'last_ms', 'view', 'history',
  'copy_session', 'last_due')
local steps, wanted = {}, 0
for index = FIRST_STEP, #ARGV, 2 do
  local step = cmsgpack.unpack(ARGV[index])
  if step[1] == 'put' then
    step[3][4], wanted = ARGV[index + 1], wanted + 1
  end
  steps[#steps + 1] = step
end
local refused = refusal(held[1], held[2], held[3], held[4], ARGV[2], wanted)
if refused then
  return refused
elseif held[8] ~= ARGV[5] then
  return { OK, 0, SUPERSEDED, 0, tonumber(held[1]), 0 }
end
local now = now_at(ARGV[1], held[5])
local next_offset, bytes, drops_left = tonumber(held[1]), 0, tonumber(ARGV[8])
local last_due = tonumber(held[9] or '0')
local has_view = held[6]
if ARGV[4] == '1' and not has_view then
  begin_view(held[1])
  has_view = true
end

-- The offset here of a message there, or nil; and whether it is a dead letter here.
local function copy_of(offset)
  local live = redis.call('ZRANGEBYSCORE', copies_key(), offset, offset)[1]
  if live then
    return live, false
  end
  return redis.call('ZRANGEBYSCORE', copies_key(true), offset, offset)[1], true
end

local function drop_copy(offset, is_dead)
  redis.call('ZREM', copies_key(is_dead), offset)
  drops_left = drops_left - 1
  if drop_in_any_state(offset) == 1 then
    count('moved_out', 1)
    note(offset, 'moved_out')
  end
end

local function record_in(message)
  local _, _, _, batch, arrival, renewed, group, receives, failures, crashes, first, expires, priority, reason,
    details = unpack(message)
  local record = new_record(arrival, group, #batch)
  record[RECEIVES], record[FAILURES], record[CRASHES], record[FIRST] = receives, failures, crashes, first
  record[RENEWED], record[EXPIRES], record[PRIORITY] = renewed, expires, priority
  keep_failure(record, reason, details)
  return record
end

-- A plain message waits in the log without lease state, as after a send.
local function is_plain(record, due)
  return record[RECEIVES] == 0 and record[FAILURES] == 0 and record[CRASHES] == 0 and record[GROUP] == ''
    and record[PRIORITY] == 0 and record[RENEWED] == 0 and due <= now
end

local function insert_dead(offset, record, death, batch)
  redis.call('HSET', K.dead_letters, offset, cmsgpack.pack({ record, death[1], death[2], batch }))
  redis.call('ZADD', K.dead, offset, offset)
  redis.call('ZADD', K.dead_due, word(death[1]), offset)
end

-- `is_last`: behind all messages here, so that it goes into the log.
local function insert(offset, message, is_last)
  local due, death, batch, record = message[2], message[3], message[4], record_in(message)
  if death[1] then
    insert_dead(offset, record, death, batch)
    return
  end
  if fifo and record[RECEIVES] > 0 then
    due = -1  -- it was sent back with a delay: those behind it in the group do not overtake it here either
  end
  if record[EXPIRES] > 0 then
    redis.call('ZADD', K.expiring, word(record[EXPIRES]), offset)
  end
  if not is_last then
    count('bytes_gone', -#batch)
  end
  if is_last and is_plain(record, due) then
    redis.call('XADD', K.log, entry_id(offset, record), 'd', batch,
      unpack(record[EXPIRES] > 0 and { 't', word(record[EXPIRES]) } or {}))
    return
  elseif is_last then
    redis.call('XADD', K.log, entry_id(offset, record), 'd', batch, 'x', '1')
  else
    keep(offset, batch)
  end
  renew(offset, record, record[RENEWED] > 0 and record[RENEWED] or record[ARRIVAL])
  save(offset, record)
  if due > now then
    redis.call('ZADD', K.delayed, word(due), offset)
    last_due = math.max(last_due, due)
  else
    make_ready(offset, record)
  end
end

-- Whether a message here is not, or not in the state, that it has there.
local function differs(offset, message)
  local letter = redis.call('HGET', K.dead_letters, offset)
  local record, batch
  if letter then
    local known = cmsgpack.unpack(letter)
    record, batch = known[1], known[4]
  else
    local entry = redis.call('XRANGE', K.log, offset, offset, 'COUNT', 1)[1]
    record, batch = record_of(offset), entry and entry[2][2] or kept_batch(offset)
  end
  record = record or new_record(0, '', 0)
  return batch ~= message[4] or (letter and true or false) ~= (message[3][1] ~= nil)
    or record[FAILURES] ~= message[9] or record[CRASHES] ~= message[10]
    or tonumber(redis.call('ZSCORE', K.delayed, offset) or -1) ~= message[2]
end

local added = 0

local function append(message)
  local offset = word(next_offset)
  redis.call('ZADD', copies_key(message[3][1]), word(message[1]), offset)
  insert(offset, message, true)
  note(offset, 'moved_in', 0, message[8])
  if has_view then
    add_to_view(offset .. '-' .. word(now), message[4])
  end
  next_offset, added = next_offset + 1, added + 1
  bytes = bytes + (message[3][1] and 0 or #message[4])
end

local function put(replaces, message)
  local offset, is_dead = copy_of(word(message[1]))
  if not offset then
    append(message)
    return
  end
  if replaces == '1' or differs(offset, message) then
    redis.call('ZREM', copies_key(is_dead), offset)
    redis.call('ZADD', copies_key(message[3][1]), word(message[1]), offset)
    drop_in_any_state(offset)
    insert(offset, message, false)
    note(offset, 'changed')
  end
end

-- Gives false when more would be dropped than one call drops.
local function only(dead, after, last, kept)
  local stays, at = {}, 0
  for _, offset in ipairs(kept) do
    stays[offset] = true
  end
  while true do
    local found = redis.call('ZRANGEBYSCORE', copies_key(dead == '1'), '(' .. word(after), last < 0 and '+inf' or word(last),
      'WITHSCORES', 'LIMIT', at, PAGE)
    for index = 1, #found, 2 do
      if stays[tonumber(found[index + 1])] then
        at = at + 1
      elseif drops_left <= 0 then
        return false
      else
        drop_copy(found[index], dead == '1')
      end
    end
    if #found < 2 * PAGE then
      return true
    end
  end
end

local function apply(step)
  if step[1] == 'put' then
    put(step[2], step[3])
  elseif step[1] == 'only' then
    return only(step[2], step[3], step[4], { unpack(step, 5) })
  else
    for index = 2, #step do
      local offset, is_dead = copy_of(word(step[index]))
      if offset then
        drop_copy(offset, is_dead)
      end
    end
  end
  return true
end

local outcome = APPLIED
for _, step in ipairs(steps) do
  if not apply(step) then
    outcome = UNFINISHED
    break
  end
end
if added > 0 then
  redis.call('HSET', K.meta, 'next', word(next_offset), 'last_ms', word(now))
  redis.call('HINCRBY', K.meta, 'bytes', bytes)
  count('moved_in', added)
  end_view(next_offset, now)
end
if fifo and last_due > now then
  redis.call('HSET', K.meta, 'last_due', word(last_due))
end
if outcome == APPLIED then
  if ARGV[6] ~= '' then
    redis.call('HSET', K.meta, 'copy_position', ARGV[6])
  end
  if ARGV[7] ~= '-1' then
    redis.call('HSET', K.meta, 'copy_next', ARGV[7])
  end
end
return { OK, now, outcome, tonumber(held[2]) - next_offset, next_offset, added }
