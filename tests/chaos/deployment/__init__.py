"""A whole deployment, each of its processes on a machine of its own, and what befalls the machines."""
