"""The hot store as its engines see it: verbs, values and exceptions, and no commands."""
