"""Terminal output, prompts, completion and error messages."""
