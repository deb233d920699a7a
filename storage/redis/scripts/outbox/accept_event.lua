-- Accept an event into an outbox, unless an event of that id was accepted before.
-- KEYS     1 meta  2 entries  3 seen  4 seen_old
-- ARGV     1 now_ms or empty  2 event id, or empty for an event that has none  3 how long ids are remembered, ms
--          4 ids at most  5 bytes waiting at most  6 the event
-- Returns  0 accepted, 1 accepted before, 2 the outbox is full
-- Keeps    E5 an event id is accepted once within its window; sequences rise, also after the store lost data
-- @include numbers
-- @include time
-- @include two_generations
local ACCEPTED, DUPLICATE, FULL = 0, 1, 2
-- Sequences begin at the time, so that those after a loss are above those before it: 2048 a millisecond are below
-- 2^53 until the year 2109.
local PER_MS = 2048

local state = redis.call('HMGET', KEYS[1], 'sequence', 'bytes', 'last_ms')
local waiting = tonumber(state[2] or '0')
local now = now_at(ARGV[1], state[3])
if ARGV[2] ~= '' then
  local accepted_ms = recall(KEYS[3], KEYS[4], ARGV[2])
  if accepted_ms and now - tonumber(accepted_ms) < tonumber(ARGV[3]) then
    redis.call('HINCRBY', KEYS[1], 'duplicates', 1)
    return DUPLICATE
  end
end
if waiting + #ARGV[6] > tonumber(ARGV[5]) then
  return FULL
end
local sequence = math.max(tonumber(state[1] or '-1') + 1, now * PER_MS)
redis.call('XADD', KEYS[2], word(sequence) .. '-0', 'e', ARGV[6])
redis.call('HSET', KEYS[1], 'sequence', word(sequence), 'bytes', word(waiting + #ARGV[6]), 'last_ms', word(now),
  'accepted_ms', word(now))
redis.call('HINCRBY', KEYS[1], 'accepted', 1)
if ARGV[2] ~= '' then
  remember(KEYS[1], KEYS[3], KEYS[4], 'seen_since', now, tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[2], word(now))
end
return ACCEPTED
