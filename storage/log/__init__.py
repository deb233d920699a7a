"""Log provisioning, the store epoch, and execution with repair."""
