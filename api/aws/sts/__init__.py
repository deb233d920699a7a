"""The STS-compatible API: GetCallerIdentity."""
