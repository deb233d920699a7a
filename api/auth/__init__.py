"""Who is calling: every door asks here."""
