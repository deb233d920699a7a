"""Queue attributes, URLs, ARNs, policies and redrive."""
