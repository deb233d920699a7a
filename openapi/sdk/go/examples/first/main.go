// Command first sends an order to a worker and reads a stream.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"millstream"
	"millstream/core"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, stop); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, stop func()) error {
	client := millstream.New() // MILLSTREAM_URL, MILLSTREAM_API_KEY
	orders := client.Queue("go-orders")
	config := core.QueueConfig{}
	config.SetAttemptsMax(3)
	if _, err := orders.Create(ctx, config); err != nil {
		return err
	}
	if _, err := orders.Send(ctx, map[string]any{"order": 7, "total": 12.5}); err != nil {
		return err
	}
	if err := orders.Work(ctx, ship(stop), millstream.Concurrency(8)); err != nil {
		return err
	}
	return readClicks(context.WithoutCancel(ctx), client)
}

// ship returns a handler that stops the worker after the first order.
func ship(stop func()) millstream.Handler {
	return func(_ context.Context, message *millstream.Message) error {
		var order struct{ Order, Total float64 }
		if err := message.JSON(&order); err != nil || order.Total < 0 {
			return millstream.Reject("not an order") // a dead letter
		}
		if order.Total > 1_000 {
			return millstream.Retry(time.Minute, errors.New("wait for approval"))
		}
		fmt.Println("shipped", order.Order)
		stop()
		return nil // acknowledged
	}
}

func readClicks(ctx context.Context, client *millstream.Client) error {
	clicks := client.Stream("go-clicks")
	if _, err := clicks.Create(ctx, core.StreamConfig{}); err != nil {
		return err
	}
	click := millstream.NewRecord{Data: map[string]string{"page": "/"}, Key: "ann"}
	if _, err := clicks.Append(ctx, click); err != nil {
		return err
	}
	for record, err := range clicks.Read(ctx, millstream.Earliest) {
		if err != nil {
			return err
		}
		fmt.Println(record.Offset, record.Key, record.Text())
	}
	return nil
}
