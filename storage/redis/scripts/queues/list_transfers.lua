-- Show the messages that are on their way from this queue to another, in the order they were sent in, or to a topic, in
-- the order of their departures.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 how many at most  2 '1': those that routes take; else the others, as many of each: those
--          to queues, and dead letters for a topic behind them
-- Returns  { OK, name of the sequence of departures, message as lib/transfers.lua shows it... },
--          or what lib/status.lua says
-- @include numbers
-- @include status
-- @include history
-- @include queue
-- @include transfers
-- @include existing_queue
local wanted = tonumber(ARGV[1])
local answer = { OK, redis.call('HGET', K.meta, 'departures') or '' }
if ARGV[2] == '1' then
  return add_transfers(answer, word(ROUTED), '(' .. word(LETTERS), wanted)
end
add_transfers(answer, '-inf', '(' .. word(ROUTED), wanted)
return add_transfers(answer, word(LETTERS), '+inf', wanted)
