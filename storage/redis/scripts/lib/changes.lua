-- The stream of the changes that lib/history.lua records.
local CHANGES = string.sub(KEYS[2], 1, -5) .. 'changes'
