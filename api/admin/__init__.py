"""The dashboard at `/ui`: pages that read the engines. What it does, it does through the REST API, from the browser."""
