-- Park a group by hand: nothing of it is delivered until it is resumed. What of it is in flight stays so.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 '1' for fifo  3 group  4 reason
-- Returns  { OK, 1, or 0 when it was parked before }, or what lib/status.lua says
-- Keeps    Q1 what waits of the group counts as parked; Q6 its order stays
-- @include numbers
-- @include time
-- @include status
-- @include history
-- @include queue
-- @include existing_queue
fifo = ARGV[2] == '1'
return { OK, park(ARGV[3], -1, ARGV[4], now_at(ARGV[1], last_ms)) and 1 or 0 }
