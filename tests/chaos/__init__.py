"""Long runs under failure, with a checker of their own."""
