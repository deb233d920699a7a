// Package millstream is a client of Millstream queues and streams.
//
//	client := millstream.New() // MILLSTREAM_URL, MILLSTREAM_API_KEY
//	orders := client.Queue("orders")
//	sent, err := orders.Send(ctx, map[string]any{"order": 7})
//
// Calls are retried where a repeat is safe. Package core, which is generated, has the types of
// configurations and a function for each operation of the REST API: see [Client.Core].
package millstream

//go:generate ../../../.venv/bin/python ../../generate.py go
