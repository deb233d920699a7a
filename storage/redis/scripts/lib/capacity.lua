-- Room in a queue that may hold so much and no more: messages that wait, are delayed, in flight or parked. Dead letters,
-- and what is on its way to another queue, do not count.
local LOOKS, REMOVALS = 1000, 1000  -- messages that one call passes by, and removes, to make room

local look_from, looks_left, kept_from = '-', LOOKS, 0

-- The first message of the log that is not in flight. Of a log whose head is in flight, the head is passed by in one go
-- when too much of it is.
local function oldest_in_log()
  while true do
    local entry = redis.call('XRANGE', K.log, look_from, '+', 'COUNT', 1)[1]
    if not entry then
      return nil
    end
    local offset = string.match(entry[1], '^(%d+)-')
    if not redis.call('ZSCORE', K.leases, offset) then
      return offset, entry
    end
    looks_left = looks_left - 1
    if looks_left < 0 then
      return nil
    end
    local following = tonumber(offset) + 1
    if looks_left == LOOKS / 2 then
      following = math.max(following, tonumber(redis.call('HGET', K.meta, 'cursor') or '0'))
    end
    look_from = word(following)
  end
end

-- The first that left the log and is not in flight. One at a time: each comes with its body.
local function oldest_kept()
  while looks_left >= 0 do
    local kept = redis.call('ZRANGEBYSCORE', K.kept, word(kept_from), '+inf', 'LIMIT', 0, 1)[1]
    local offset = kept and string.match(kept, '^(%d+):')
    if not offset or not redis.call('ZSCORE', K.leases, offset) then
      return offset
    end
    kept_from, looks_left = tonumber(offset) + 1, looks_left - 1
  end
end

-- Remove the oldest message that is not in flight; gives whether there was one.
local function remove_oldest(overflow, now)
  local offset, entry = oldest_in_log()
  local kept_offset = oldest_kept()
  if kept_offset and (not offset or tonumber(kept_offset) < tonumber(offset)) then
    offset, entry = kept_offset, nil
  elseif not offset then
    return false
  end
  local record = record_of(offset)
  if record then
    detach(offset, record)
  else
    record = new_record(tonumber(string.match(entry[1], '-(%d+)$')), '', #entry[2][2])
    record[EXPIRES] = entry[2][3] == 't' and tonumber(entry[2][4]) or 0
  end
  if overflow == 'dead_letter' then
    bury(offset, record, 'the queue was full', 'full', now)
  else
    forget(offset, record)
    count('dropped', 1)
    note(offset, 'dropped', 0, 0, 'the queue was full')
  end
  return true
end

-- Whether `many` new messages of `size` bytes fit, where `added` bytes were added in this call; what stands in their
-- way goes when `caps`, { messages at most, bytes at most, overflow }, says so.
local function make_room(many, size, added, caps, now)
  local messages_max, bytes_max, overflow = unpack(caps)
  if many == 0 then
    return true
  elseif (messages_max > 0 and many > messages_max) or (bytes_max > 0 and size > bytes_max) then
    return false
  end
  for _ = 0, REMOVALS do
    local held = redis.call('HMGET', K.meta, 'bytes', 'bytes_gone')
    local messages = redis.call('XLEN', K.log) + redis.call('ZCARD', K.kept)
    local bytes = tonumber(held[1] or '0') - tonumber(held[2] or '0') + added
    if (messages_max == 0 or messages + many <= messages_max) and (bytes_max == 0 or bytes + size <= bytes_max) then
      return true
    elseif overflow == 'reject' or not remove_oldest(overflow, now) then
      return false
    end
  end
  return false
end
