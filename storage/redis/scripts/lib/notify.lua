-- Tell whoever waits on this log that something changed. The flag is set by a read that found nothing,
-- and cleared here: one publish for each time the log turned quiet, whatever the number of waiters.
local function wake(meta)
  if redis.call('HDEL', meta, 'waiting') == 1 then
    redis.call('PUBLISH', 'ms:wake', string.match(meta, '{(.-)}'))
  end
end
