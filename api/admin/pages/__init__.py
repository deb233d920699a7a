"""One page, or one noun's pages, per module."""
