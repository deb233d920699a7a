"""Reading on someone's behalf, and the periodic duties: sweeps today; groups, push and webhooks later."""
