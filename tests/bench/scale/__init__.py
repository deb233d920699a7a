"""How cost grows with size: `make scale`."""
