#!lua flags=allow-oom
-- Commit offsets of a group's shards, where the group's leases as of its last seed allow it.
-- KEYS     1 offsets: as lib/group_offsets.lua has it
-- ARGV     1 store epoch of the caller  2 time to live, ms  3 now_ms or empty  4 1 for a simple group, or 0
--          then four for each shard, each shard once: shard, member or empty, generation or empty, offset
-- Returns  { OK, now_ms, then for each shard { committed offset, lease generation }, or {} where Postgres must decide }
-- Keeps    G1: a frozen group moves nothing. G2: a commit below its lease's generation, or of another member, moves
--          nothing. G3: an offset never falls; that it is within the shard was checked before
-- @include status
-- @include time
-- @include numbers
-- @include group_offsets
local now = now_at(ARGV[3])
local RENEWALS = 7  -- of the time to live, before it ends: renewing it at each commit would take longer than the commit
local state = redis.call('HMGET', KEYS[1], 'generation', 'epoch', 'fence', 'renewed')
local generation = tonumber(state[1] or '')
local usable = generation and not state[3] and tonumber(state[2]) >= tonumber(ARGV[1])
local simple = ARGV[4] == '1'

local function allows(lease, owner, member, given)
  if simple then
    return not given or given >= lease
  end
  return member ~= '' and owner == member and given and given >= lease and given <= generation
end

local answers, moved = { OK, now }, {}
for index = 5, #ARGV, 4 do
  local shard, member = ARGV[index], ARGV[index + 1]
  local given, offset = tonumber(ARGV[index + 2]), tonumber(ARGV[index + 3])
  local text = usable and redis.call('HGET', KEYS[1], shard)
  local answer = {}
  if text then
    local lease, owner, committed = entry_of(text)
    if allows(lease, owner, member, given) then
      offset = math.max(offset, committed or 0)
      moved[#moved + 1] = shard
      moved[#moved + 1] = table.concat({ word(lease), owner, word(offset), word(now) }, '|')
      answer = { offset, lease }
    end
  end
  answers[#answers + 1] = answer
end
if #moved > 0 then
  if math.abs(now - tonumber(state[4] or '0')) > tonumber(ARGV[2]) / RENEWALS then
    moved[#moved + 1] = 'renewed'
    moved[#moved + 1] = word(now)
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  redis.call('HSET', KEYS[1], unpack(moved))
end
return answers
