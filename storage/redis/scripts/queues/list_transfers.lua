-- Show the messages that are on their way from this queue to another, in the order they were sent in, or to a topic, in
-- the order of their departures.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 how many at most  2 1: to another queue; 2: those that routes take; 3: dead letters for a topic
-- Returns  { OK, name of the sequence of departures, message as lib/transfers.lua shows it... },
--          or what lib/status.lua says
-- @include numbers
-- @include status
-- @include history
-- @include queue
-- @include transfers
-- @include existing_queue
local RANGES = {
  { '-inf', '(' .. word(ROUTED) }, { word(ROUTED), '(' .. word(LETTERS) }, { word(LETTERS), '+inf' }
}
local first, last = unpack(RANGES[tonumber(ARGV[2])])
return add_transfers({ OK, redis.call('HGET', K.meta, 'departures') or '' }, first, last, tonumber(ARGV[1]))
