"""Commands that access a deployment directly: doctor, backup, archive check, local keys."""
