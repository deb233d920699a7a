"""The synchronous client, most of it generated from the asynchronous one."""
