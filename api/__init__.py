"""Every front door of Millstream, and the only place that knows HTTP."""
