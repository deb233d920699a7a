"""Wire protocols, dashboard and command line. The only package that knows HTTP."""
