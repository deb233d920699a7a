"""`millstream bench`: open-loop load on a running service."""
