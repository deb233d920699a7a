-- The first element of every answer: what became of the call as a whole.
local OK = 0
local UNKNOWN_LOG = 1    -- nothing is kept under this id: the caller asks Postgres, then creates it
local DELETED = 2        -- a tombstone: the caller's definition is stale
local CALLER_BEHIND = 3  -- { 3, log's store epoch }: the caller's store epoch is older than the log's
local LOG_BEHIND = 4     -- { 4, next }: the store got a new epoch; the log must jump to its reserved ceiling
local AT_CEILING = 5     -- { 5, next }: more offsets must be reserved first
local FENCED = 6         -- a queue that takes nothing but copies of another deployment's

-- Returns the answer for a log that is deleted or unknown, from these fields of its meta; nil for one that exists.
local function absence(deleted, next_offset)
  if deleted then
    return { DELETED }
  elseif not next_offset then
    return { UNKNOWN_LOG }
  end
end
