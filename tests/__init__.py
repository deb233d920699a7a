"""The test suite; it runs against real servers, see conftest.py."""
