-- Show what has changed about a queue's messages since a position, to a mirror that copies them. The first call begins to
-- record changes; a sweep ends it once nobody reads them.
-- KEYS     as lib/queue.lua names them
-- ARGV     1 now_ms or empty  2 store epoch of the position, or empty for none  3 number of the last change that is known
--          4 how many changes at most  5 how long changes are recorded without a reader, ms  6 next offset that is
--          known: if there is nothing new, the next send wakes who waits
-- Returns  { OK, now_ms, store epoch, number of the last change given, 1 if changes since the position are missing: then
--          the queue must be copied anew; next offset; changes that follow; fence or ''; log id the queue was copied from or
--          ''; next offset there; field, offset of each change... }, or what lib/status.lua says
-- @include numbers
-- @include time
-- @include status
-- @include history
-- @include changes
-- @include queue
-- @include existing_queue
local RENEWALS = 24  -- in the time that changes are recorded without a reader

local now = now_at(ARGV[1], last_ms)
local epoch, known, kept_ms = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local held = redis.call('HMGET', K.meta, 'changes', 'changes_until', 'changes_ended', 'store_epoch', 'fence', 'copy_of',
  'copy_next')
local last = tonumber(held[1] or nil)
if not last then
  last = tonumber(held[3] or '0') + 1  -- a number without an entry: no position before it is continued
  redis.call('HSET', K.meta, 'changes', word(last))
end
if tonumber(held[2] or '0') < now + kept_ms - kept_ms / RENEWALS then
  redis.call('HSET', K.meta, 'changes_until', word(now + kept_ms))
end

local first = redis.call('XRANGE', CHANGES, '-', '+', 'COUNT', 1)[1]
local oldest = first and tonumber(string.match(first[1], '^(%d+)-')) or last + 1
local is_continued = epoch == held[4] and known <= last and oldest <= known + 1
if not is_continued then
  return { OK, now, tonumber(held[4]), last, 1, tonumber(next_offset), 0, held[5] or '', held[6] or '',
    tonumber(held[7] or '0') }
end
local changes = redis.call('XRANGE', CHANGES, word(known + 1), '+', 'COUNT', ARGV[4])
local given = known + #changes
local answer = { OK, now, tonumber(held[4]), given, 0, tonumber(next_offset), last - given, held[5] or '', held[6] or '',
  tonumber(held[7] or '0') }
if #changes == 0 and tonumber(next_offset) <= tonumber(ARGV[6]) then
  redis.call('HSET', K.meta, 'waiting', '1')
end
for _, entry in ipairs(changes) do
  answer[#answer + 1], answer[#answer + 2] = entry[2][1], tonumber(entry[2][2])
end
return answer
