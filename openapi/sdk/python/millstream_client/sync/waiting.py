"""How to wait."""

import time
from collections.abc import Callable

Sleep = Callable[[float], None]

sleep: Sleep = time.sleep
