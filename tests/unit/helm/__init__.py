"""What Helm makes of the chart, and with which values."""
