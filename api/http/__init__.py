"""HTTP building blocks: routing, codecs, responses and headers."""
