package main

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	queue     = "compare"
	perSocket = 8
	prefetch  = 100
)

// rabbit is a durable queue of RabbitMQ, persistent messages, and publisher confirms.
type rabbit struct {
	url, kind string
	body      []byte
	sockets   []*amqp.Connection
}

func (r *rabbit) channel(nth int) (*amqp.Channel, error) {
	if nth/perSocket >= len(r.sockets) {
		socket, err := amqp.Dial(r.url)
		if err != nil {
			return nil, err
		}
		r.sockets = append(r.sockets, socket)
	}
	return r.sockets[nth/perSocket].Channel()
}

func (r *rabbit) prepare(messages int) error {
	channel, err := r.channel(0)
	if err != nil {
		return err
	}
	_, _ = channel.QueueDelete(queue, false, false, false)
	if channel, err = r.channel(0); err != nil {
		return err
	}
	arguments := amqp.Table{"x-queue-type": r.kind}
	if _, err = channel.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		return err
	}
	if err = channel.Confirm(false); err != nil {
		return err
	}
	for sent := 0; sent < messages; sent += batch {
		if err = r.publish(channel, batch); err != nil {
			return err
		}
	}
	return channel.Close()
}

func (r *rabbit) publish(channel *amqp.Channel, count int) error {
	confirmed := make([]*amqp.DeferredConfirmation, count)
	for nth := range confirmed {
		one, err := channel.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Body: r.body,
		})
		if err != nil {
			return err
		}
		confirmed[nth] = one
	}
	for _, one := range confirmed {
		if ok, err := one.WaitContext(context.Background()); err != nil || !ok {
			return fmt.Errorf("not confirmed: %v", err)
		}
	}
	return nil
}

func (r *rabbit) caller(operation string, nth int) (caller, error) {
	channel, err := r.channel(nth)
	if err != nil {
		return nil, err
	}
	if operation == "work" {
		return r.consumer(channel)
	}
	count := 1
	if operation == "produce" {
		count = batch
	}
	if err = channel.Confirm(false); err != nil {
		return nil, err
	}
	return func() (int, error) { return count, r.publish(channel, count) }, nil
}

// consumer acknowledges ten at a time, as the others do.
func (r *rabbit) consumer(channel *amqp.Channel) (caller, error) {
	if err := channel.Qos(prefetch, 0, false); err != nil {
		return nil, err
	}
	deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		var last amqp.Delivery
		for range 10 {
			last = <-deliveries
		}
		return 10, last.Ack(true)
	}, nil
}
