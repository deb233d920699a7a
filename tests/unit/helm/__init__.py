"""Rendering of the Helm chart."""
