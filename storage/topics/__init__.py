"""Topics: publishing, routes, and the route table that publishers and logs agree on."""
