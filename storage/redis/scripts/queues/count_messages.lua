-- Count a queue's messages by state, exactly, as of now: what is due moves first.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 to 7 as sweep_queue.lua
-- Returns  { OK, ready, delayed, in flight, dead-lettered, sent, deduplicated, acknowledged, expired, purged,
--          receives, bytes sent, arrival of the oldest ready message in ms or -1, moving, moved in, moved out, parked,
--          dropped, bytes held, dead since no attempt was left, since they were rejected, since the queue was full,
--          failed, 1 if the queue is fenced },
--          or what lib/status.lua says
-- Keeps    Q10: sent + moved in is the sum of the states and of what is gone, each counted on its own
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include sweep
-- @include counts
-- @include existing_queue
fifo = ARGV[7] == '1'
local now = now_at(ARGV[1], last_ms)
if move_due(tonumber(ARGV[2]), now, tonumber(ARGV[5])) > 0 then
  wake(K.meta)
end
count('expired', drop_expired(now, tonumber(ARGV[3]), tonumber(ARGV[6]))
  + drop_old_dead(now, tonumber(ARGV[4]), tonumber(ARGV[6])))
local counts = counts_of(now, tonumber(next_offset))
counts[#counts + 1] = redis.call('HEXISTS', K.meta, 'fence')
return counts
