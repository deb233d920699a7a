"""Settings of the API process and where their values come from."""
