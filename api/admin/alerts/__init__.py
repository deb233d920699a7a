"""Alerts of the dashboard: rules over the latest samples, ordered by harm."""
