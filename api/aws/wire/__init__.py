"""What Amazon's APIs have in common on the wire: targets, protocols, errors, request ids."""
