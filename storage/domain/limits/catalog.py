"""Limits of the catalog of definitions."""

from storage.domain.units import MINUTE_MS

# Definitions
DEFINITION_AGE_MS_MAX = (
    MINUTE_MS  # a cached definition is read again after this, whatever was heard
)
DEFINITION_NEW_MS = MINUTE_MS  # for so long a sweep looks at what was made or changed each time
DEFINITIONS_CACHED_MAX = 100_000  # of each kind; beyond it the oldest is read again
