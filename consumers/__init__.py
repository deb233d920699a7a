"""Reading and delivering on a client's behalf, and maintenance tasks."""
