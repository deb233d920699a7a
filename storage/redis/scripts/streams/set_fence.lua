-- Give a log to one writer, or to all again: from now on appends must carry the token. That of a topic, routes:<version>,
-- only rises: a call that arrives late sets no older one.
-- KEYS     1 meta
-- ARGV     1 store epoch  2 token, or empty for none  3 '1': only if the token now is this one:  4 token, or
--          empty for none
-- Returns  { OK, 0 set, 3 closed or 4 another token, and of a set log the next offset, of a closed one its children, else
--          the other token }, or what lib/status.lua says
-- Keeps    T3 a change of routes cuts exactly
-- @include status
-- @include writable
local SET, CLOSED, FENCED = 0, 3, 4

local function version_of(token)
  return tonumber(string.match(token, '^routes:(%d+)$') or 0)
end

local held = redis.call('HMGET', KEYS[1], 'next', 'ceiling', 'store_epoch', 'deleted', 'closed', 'fence')
local refused = refusal(held[1], held[2], held[3], held[4], ARGV[1], 0)
if refused then
  return refused
elseif held[5] then
  return { OK, CLOSED, held[5] }
elseif ARGV[3] == '1' and (held[6] or '') ~= ARGV[4] then
  return { OK, FENCED, held[6] or '' }
end
if version_of(ARGV[2]) < version_of(held[6] or '') then
  return { OK, FENCED, held[6] }
end
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[1], 'fence')
else
  redis.call('HSET', KEYS[1], 'fence', ARGV[2])
end
return { OK, SET, tonumber(held[1]) }
