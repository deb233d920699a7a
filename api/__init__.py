"""The wire protocols, the dashboard and the command line. The only package that knows HTTP."""
