"""Limits of credentials, sessions and tokens."""

from storage.domain.units import DAY_MS, HOUR_MS, KIB, MINUTE_MS, SECOND_MS

# Who is calling
SIGNATURE_SKEW_MS_MAX = 5 * 60 * SECOND_MS  # between a signer's clock and ours, as at Amazon
PRESIGNED_MS_MAX = 7 * 24 * 3600 * SECOND_MS  # as at Amazon
CREDENTIAL_WORD_CHARACTERS_MAX = 8_192  # of a key or a token: some tokens name many groups
CREDENTIALS_REMEMBERED_MAX = 10_000  # words a process has checked and need not check again
ANONYMOUS_FAILURES_MAX = 1_000  # sockets whose hello has still to say who they are
CREDENTIAL_CHECK_MS = (
    1_000  # between two looks at whether what sockets were opened with still holds
)

# Credentials
CREDENTIAL_AGE_MS_MAX = (
    30 * SECOND_MS
)  # one that was read is read again after this, whatever was heard
CREDENTIALS_CACHED_MAX = (
    20_000  # and sessions, unknown ids among them; beyond it the oldest is read again
)
CREDENTIAL_ASKS_MAX = (
    200  # ids of one statement: whoever tries ids at random takes one connection, not all
)
CREDENTIAL_BACKLOG_MAX = 2_000  # ids that wait for it; beyond it the caller hears 503
CREDENTIALS_MAX = 10_000  # live ones of one namespace
CREDENTIAL_KEPT_MS = 90 * DAY_MS  # one that ended is listed so long
CREDENTIAL_USED_MS = MINUTE_MS  # how exact the time of the last use is
CREDENTIAL_USED_FLUSH_MS = 2 * SECOND_MS  # uses that are written together
CREDENTIAL_OVERLAP_MS_DEFAULT = DAY_MS  # how long one that was rotated goes on beside the new one
CREDENTIAL_OVERLAP_MS_MAX = 30 * DAY_MS
CREDENTIALS_LIVE_MAX = 2  # of one rotation family
GRANTS_MAX = 100  # of one credential: a decision that is not remembered looks at each
GRANT_WORDS_MAX = 50  # actions, or resources, of one grant

# Sessions and tickets
TICKET_MS = 30 * SECOND_MS  # between asking for a socket's ticket and opening the socket
SESSION_IDLE_MS = 8 * HOUR_MS  # a working day
SESSION_MS_MAX = 24 * HOUR_MS  # then one logs in again
ENDED_PER_CALL = 100  # ended tickets, sessions or credentials that go as a new one is made

# Tokens of an issuer
TOKEN_LEEWAY_MS = MINUTE_MS  # clocks differ
TOKEN_SECONDS_MAX = 253_402_300_799  # the year 9999
TOKEN_SUBJECT_CHARACTERS_MAX = 255  # as OpenID Connect
JWKS_FETCH_MS = 5 * SECOND_MS
JWKS_BYTES_MAX = 256 * KIB
JWKS_KEYS_MAX = 100
JWKS_AGE_MS = 5 * MINUTE_MS  # an issuer's keys are read anew after this, beside
JWKS_STALE_MS_MAX = HOUR_MS  # and not used after this, if its issuer cannot be asked
JWKS_PAUSE_MS = 30 * SECOND_MS  # between two questions to an issuer, whatever keys tokens name
JWKS_RETRY_MS = 5 * SECOND_MS  # the same, after one that was not answered
