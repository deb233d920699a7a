-- A queue that is a copy of another deployment's. In meta: `fence`, with which it takes nothing but copies, and delivers
-- nothing; `copy_of`, the log id there; `copy_position` and `copy_next`, up to where it is copied; `copy_session`, which
-- rises with each process that copies, so that an older one changes nothing more.
local function copies_key(is_dead)
  return string.sub(K.meta, 1, -5) .. (is_dead and 'dead_copies' or 'copies')
end
