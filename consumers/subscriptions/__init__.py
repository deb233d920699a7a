"""Credit, leased deliveries and group membership of a subscriber."""
