"""Generator of the reference pages in docs/reference."""
