-- What a log remembers of earlier sends, for a queue whose partitions have changed: the caller looks where a send would
-- have gone before. The log refuses sends of an earlier generation from now on, so what it does not know stays unknown.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 generation of the caller's partitions  3 idempotency window ms  4 idempotency key or empty
--          5 fingerprint of its content, then ids of monotonic producers
-- Returns  { OK, 0 or FOUND, offsets of the key's messages, last sequence of each producer, -1 for none and -2 for a
--          retired one }, { OK, CHANGED } when the log knows a later generation, { OK, KEY_REUSED }, or what
--          lib/status.lua says
-- Keeps    Q7 one message for each idempotency key, sequence and window
-- @include numbers
-- @include time
-- @include status
-- @include two_generations
-- @include history
-- @include queue
-- @include existing_queue
local FOUND, CHANGED, KEY_REUSED = 1, 2, 3
local RETIRED = -2
local FIRST_PRODUCER = 6

local now, generation = now_at(ARGV[1], last_ms), tonumber(ARGV[2])
local latest = tonumber(redis.call('HGET', K.meta, 'generation') or '0')
if latest > generation then
  return { OK, CHANGED }
elseif latest < generation then
  redis.call('HSET', K.meta, 'generation', ARGV[2])
end

local found, offsets = 0, {}
local known = ARGV[4] ~= '' and recall(K.idem, K.idem_old, ARGV[4])
if known then
  local answered = cmsgpack.unpack(known)
  if now - answered[2] < tonumber(ARGV[3]) then
    if answered[1] ~= ARGV[5] then
      return { OK, KEY_REUSED }
    end
    found = FOUND
    for position = 3, #answered do
      offsets[#offsets + 1] = answered[position]
    end
  end
end

local lasts = {}
for index = FIRST_PRODUCER, #ARGV do
  local last = redis.call('HGET', K.rising, ARGV[index])
  lasts[#lasts + 1] = last and tonumber(last)
    or (recall(K.rising_over, K.rising_over_old, ARGV[index]) and RETIRED or -1)
end
return { OK, found, offsets, lasts }
