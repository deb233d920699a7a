-- Drop one message, whatever its state: ready, delayed, in flight or dead-lettered.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 '1' for fifo  2 offset  3 now_ms or empty
-- Returns  { OK, 1 when it was there, else 0 }, or what lib/status.lua says
-- Keeps    Q1; Q6 a group goes on without it; Q10: what is dropped counts as purged
-- @include numbers
-- @include time
-- @include notify
-- @include status
-- @include history
-- @include queue
-- @include sweep
-- @include drop
-- @include existing_queue
fifo = ARGV[1] == '1'
local offset = ARGV[2]
now_at(ARGV[3], last_ms)

local dropped = drop_in_any_state(offset)
count('purged', dropped)
if dropped == 1 then
  note(offset, 'purged')
  wake(K.meta)
end
return { OK, dropped }
