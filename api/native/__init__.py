"""Wire types shared by REST and WebSocket: fields, messages, records, problems and cursors."""
