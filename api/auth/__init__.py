"""Authentication of callers and the audit of their calls."""
