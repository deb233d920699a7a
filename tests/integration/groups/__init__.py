"""Consumer groups over real stores."""
