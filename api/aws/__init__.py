"""The doors for programs written against Amazon's APIs; the only place that knows Amazon's words."""
