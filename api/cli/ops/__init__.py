"""Commands that work on a deployment directly: doctor, backup, archive verification, local keys."""
