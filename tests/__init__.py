"""The suite. Real servers stand behind it: see conftest.py."""
