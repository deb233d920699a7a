-- Whole numbers as words. Lua counts in doubles: exact below 2^53, but tostring() turns to 1e+15 too early, and
-- '%.0f' takes twice as long.
local function word(number)
  return string.format('%d', number)
end
