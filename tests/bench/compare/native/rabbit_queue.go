package main

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

const prefetch = 100

// quorumQueue has persistent messages, publisher confirms, and consumers that are pushed to.
type quorumQueue struct {
	target
	// exchange and key that messages are published with; the default exchange has queues by their names.
	exchange, key string
	sockets       []*amqp.Connection
}

func newQuorumQueue(to target) (broker, error) { return &quorumQueue{target: to, key: to.name}, nil }

func (q *quorumQueue) channel(nth int) (*amqp.Channel, error) {
	if nth/perSocket >= len(q.sockets) {
		socket, err := amqp.Dial(q.url)
		if err != nil {
			return nil, err
		}
		q.sockets = append(q.sockets, socket)
	}
	return q.sockets[nth/perSocket].Channel()
}

func (q *quorumQueue) create() error {
	channel, err := q.channel(0)
	if err != nil {
		return err
	}
	return declare(channel, q.name)
}

func declare(channel *amqp.Channel, name string) error {
	kind := amqp.Table{"x-queue-type": "quorum"}
	_, err := channel.QueueDeclare(name, true, false, false, false, kind)
	return err
}

func (q *quorumQueue) drop() error {
	channel, err := q.channel(0)
	if err != nil {
		return err
	}
	_, err = channel.QueueDelete(q.name, false, false, false)
	return err
}

func (q *quorumQueue) caller(operation string, nth int) (caller, error) {
	channel, err := q.channel(nth)
	if err != nil {
		return nil, err
	}
	switch operation {
	case "send", "produce":
		count := map[string]int{"send": 1, "produce": batch}[operation]
		err = channel.Confirm(false)
		return func() (int, error) { return count, q.publish(channel, count) }, err
	case "work":
		return consume(channel, q.name, few, prefetch)
	}
	return nil, unsupported(operation)
}

func (q *quorumQueue) publish(channel *amqp.Channel, count int) error {
	confirmed := make([]*amqp.DeferredConfirmation, count)
	for nth := range confirmed {
		one, err := channel.PublishWithDeferredConfirm(q.exchange, q.key, false, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, Body: q.body,
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

// consume acknowledges some at a time, as the others do.
func consume(channel *amqp.Channel, queue string, count, ahead int) (caller, error) {
	if err := channel.Qos(ahead, 0, false); err != nil {
		return nil, err
	}
	deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		var last amqp.Delivery
		for range count {
			last = <-deliveries
		}
		return count, last.Ack(true)
	}, nil
}
