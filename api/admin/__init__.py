"""The dashboard at `/ui`.

Pages read the engines; changes go through the REST API from the browser.
"""
