"""Storage bootstrap: composes and opens engines, tiers and settings, and closes them.

`engines` calls the assembly of each area in the order of the layers, with the parts that it needs. What an area opens is closed by
the exit stack that it is passed, in the opposite order.
"""

from storage.bootstrap.engines import open_storage
from storage.bootstrap.single_engines import open_audit, open_credentials
from storage.bootstrap.storage import Storage
from storage.bootstrap.tiers import Stores

__all__ = ["Storage", "Stores", "open_audit", "open_credentials", "open_storage"]
