"""The HTTP server: protocol classes, gateway and process tuning."""
