"""Topics, as clients of the REST API see them."""
