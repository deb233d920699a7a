"""`millstream bench`: open-loop load on any service, and what its users would have waited."""
