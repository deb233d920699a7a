"""Grammar of the command line: groups, common options, values and help."""
