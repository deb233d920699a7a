-- A group's hash: `generation` and `epoch` of its last seed, `fence` while it is frozen, `renewed` (when a commit last
-- renewed its time to live, ms), and by shard an entry
-- 'lease generation|owner or empty|committed or empty|committed at, ms, or empty'.
local function entry_of(text)
  local lease, owner, committed = string.match(text, '^(%d+)|([^|]*)|(%d*)|%d*$')
  return tonumber(lease), owner, tonumber(committed)
end
