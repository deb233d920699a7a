"""The pages of docs/reference that are made of the code: settings, commands, operations, frames, errors, limits."""
