-- The history of a queue's messages, when its owner wants that: an event for each change of a message's state, in a
-- stream of which the oldest events go. Field o: the message's offset, or '*' for every message before the offset
-- that is the event's number; e: MessagePack { what, at ms, until when or 0, a number or 0 }; w: why, in words, or the
-- consumer of a delivery; d: details of a failure, if there are any.
-- In meta `history` is how many events there may be. A script that has read it says so in `noted_max`.
--
-- The changes of its messages that mirrors copy, while one reads them (queues/read_changes.lua): a stream of entries
-- n-0 whose numbers follow one another. Field g: the message at this offset is gone; c: it failed, died, lives again, or was
-- edited; p: all messages before this offset were purged. In meta `changes` is the number of the last entry; a
-- script that has read it says so in `change`.
local TEXT_MAX, DETAILS_MAX = 256, 1024  -- bytes: an event has 400 at most, and that of a failure 1,500
local CHANGES_MAX = 100000  -- a mirror that falls further behind copies the queue anew
local noted_max  -- nil: not asked yet; false: no history
local change     -- likewise

local function note(offset, what, until_ms, number, text, details)
  if noted_max == nil or change == nil then
    local held = redis.call('HMGET', KEYS[2], 'history', 'changes')
    if noted_max == nil then
      noted_max = held[1]
    end
    change = held[2]
  end
  if change then
    local fields = {  -- here, so that calls without changes do not build it
      acknowledged = 'g', expired = 'g', dropped = 'g', purged = 'g', moved_out = 'g', dead_lettered = 'c', redriven = 'c',
      changed = 'c', nacked = 'c', lease_ended = 'c',
    }
    local field = offset == '*' and 'p' or fields[what]
    if field then
      change = redis.call('HINCRBY', KEYS[2], 'changes', 1)
      redis.call('XADD', string.sub(KEYS[2], 1, -5) .. 'changes', 'MAXLEN', '~', CHANGES_MAX, word(change) .. '-0',
        field, offset == '*' and word(number) or offset)
    end
  end
  if noted_max then
    redis.call('XADD', KEYS[31], 'MAXLEN', '~', noted_max, '*', 'o', offset,
      'e', cmsgpack.pack({ what, told_now, until_ms or 0, number or 0 }), 'w', string.sub(text or '', 1, TEXT_MAX),
      unpack((details or '') ~= '' and { 'd', string.sub(details, 1, DETAILS_MAX) } or {}))
  end
end

-- As its owner wants it from now on: so many events at most, or '0' for no history.
local function keep_history(held, wanted)
  noted_max = wanted ~= '0' and wanted
  if held and not noted_max then
    redis.call('HDEL', KEYS[2], 'history')
    redis.call('UNLINK', KEYS[31])
  elseif noted_max and held ~= wanted then
    redis.call('HSET', KEYS[2], 'history', wanted)
  end
end
