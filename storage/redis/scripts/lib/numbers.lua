-- Numbers as words. Lua counts in doubles: exact below 2^53, but tostring() turns to 1e+15 too early.
local function word(number)
  return string.format('%.0f', number)
end
