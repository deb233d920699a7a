"""Growth of cost with size: `make scale`."""
