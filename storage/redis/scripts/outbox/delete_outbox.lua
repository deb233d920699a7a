-- Delete an outbox with everything in it.
-- KEYS     all keys of the outbox
-- ARGV     none
-- Returns  how many keys existed
-- Keeps    nothing: it is called when the source is deleted
return redis.call('UNLINK', unpack(KEYS))
