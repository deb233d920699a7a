-- Show the messages that are on their way from this queue to another, in the order they were sent in, or those that
-- routes take, in the order of their departures.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 how many at most  2 '1': those that routes take
-- Returns  { OK, name of the sequence of departures, message as lib/transfers.lua shows it... },
--          or what lib/status.lua says
-- @include numbers
-- @include status
-- @include history
-- @include queue
-- @include transfers
-- @include existing_queue
local first, last = '-inf', '(' .. word(ROUTED)
if ARGV[2] == '1' then
  first, last = word(ROUTED), '+inf'
end
return add_transfers({ OK, redis.call('HGET', K.meta, 'departures') or '' }, first, last, tonumber(ARGV[1]))
