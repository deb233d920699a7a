"""Caches, batchers and helpers for asyncio tasks."""
