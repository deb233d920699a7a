"""Webhook delivery: signed HTTP posts with retries, circuit breaker and SSRF guard."""
