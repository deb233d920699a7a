"""What the native doors, REST and push, have alike on the wire: fields, messages, records, problems, cursors."""
