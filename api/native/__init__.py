"""Wire types of REST and WebSocket: fields, messages, records, problems, cursors."""
