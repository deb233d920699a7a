"""SQL conditions: names, values, parser and compiler."""
