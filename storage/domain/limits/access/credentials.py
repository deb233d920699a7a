"""Limits of credentials, sessions and tokens."""

from storage.domain.limits._shared import DAY_MS, HOUR_MS, KIB, MINUTE_MS, SECOND_MS

# Authentication
SIGNATURE_SKEW_MS_MAX = (
    5 * 60 * SECOND_MS
)  # between the signer's clock and the server's, as at Amazon
PRESIGNED_MS_MAX = 7 * 24 * 3600 * SECOND_MS  # as at Amazon
CREDENTIAL_TOKEN_CHARACTERS_MAX = 8_192  # of a key or a token: some tokens list many groups
VERIFIED_TOKENS_CACHED_MAX = (
    10_000  # keys and tokens that a process has verified and need not verify again
)
ANONYMOUS_CONNECTIONS_MAX = 1_000  # sockets that have not yet authenticated with their hello
CREDENTIAL_CHECK_MS = 1_000  # interval at which the credentials of open sockets are validated again

# Credentials
CREDENTIAL_AGE_MS_MAX = (
    30 * SECOND_MS
)  # a cached credential is read again after this, regardless of notifications
CREDENTIALS_CACHED_MAX = (
    20_000  # including sessions and unknown ids; beyond it, the oldest is read again
)
CREDENTIAL_BATCH_IDS_MAX = (
    200  # per statement: a caller that guesses ids occupies one connection, not all
)
CREDENTIAL_BACKLOG_MAX = 2_000  # ids waiting for a statement; beyond it, calls get 503
CREDENTIALS_MAX = 10_000  # active ones per namespace
CREDENTIAL_RETENTION_MS = 90 * DAY_MS  # an expired or revoked credential is listed this long
CREDENTIAL_USED_MS = MINUTE_MS  # resolution of the time of last use
CREDENTIAL_USED_FLUSH_MS = 2 * SECOND_MS  # uses within this are written together
CREDENTIAL_OVERLAP_MS_DEFAULT = (
    DAY_MS  # how long a rotated credential stays valid beside the new one
)
CREDENTIAL_OVERLAP_MS_MAX = 30 * DAY_MS
CREDENTIALS_LIVE_MAX = 2  # per rotation family
GRANTS_MAX = 100  # per credential: a decision that is not cached checks each
GRANT_ITEMS_MAX = 50  # actions, or resources, per grant

# Sessions and tickets
TICKET_MS = 30 * SECOND_MS  # between requesting a ticket for a socket and opening the socket
SESSION_IDLE_MS = 8 * HOUR_MS  # a working day
SESSION_MS_MAX = 24 * HOUR_MS  # then a new login is required
EXPIRED_CREDENTIALS_PER_CALL = (
    100  # expired tickets, sessions or credentials deleted when a new one is created
)

# Tokens and their issuers
TOKEN_LEEWAY_MS = MINUTE_MS  # clocks differ
TOKEN_SECONDS_MAX = 253_402_300_799  # the year 9999
TOKEN_SUBJECT_CHARACTERS_MAX = 255  # as OpenID Connect
JWKS_FETCH_MS = 5 * SECOND_MS
JWKS_BYTES_MAX = 256 * KIB
JWKS_KEYS_MAX = 100
JWKS_AGE_MS = 5 * MINUTE_MS  # an issuer's keys are refreshed in the background after this
JWKS_STALE_MS_MAX = HOUR_MS  # and no longer used after this, if the issuer is unreachable
JWKS_PAUSE_MS = 30 * SECOND_MS  # between two requests to an issuer, whichever keys tokens name
JWKS_RETRY_MS = 5 * SECOND_MS  # the same, after a request that failed
