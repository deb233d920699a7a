"""How often a process looks for garbage.

What it makes while it starts stays as long as it does, and a request leaves no cycles. With Python's own thresholds a
sixth of a start goes into looking for garbage, a tenth of a busy process's time, and a quarter of a short command's
into freeing, one by one, what ends with the process.
"""

import gc

_YOUNG_MAX = 20_000  # objects made and not freed before the youngest are looked at


def look_seldom() -> None:
    """From now on. To be called before what is large is imported."""
    gc.set_threshold(_YOUNG_MAX, 20, 50)


def settle() -> None:
    """What is there now, and is in use, stays: it is not looked at again, and what comes seldom."""
    look_seldom()
    gc.collect()
    gc.freeze()


def let_go() -> None:
    """The process ends: what is there is not taken apart."""
    gc.freeze()
