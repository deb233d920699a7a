package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stream is a JetStream in files, of one replica.
type stream struct {
	url     string
	body    []byte
	sockets []*nats.Conn
	log     jetstream.Stream
}

func (s *stream) socket(nth int) (jetstream.JetStream, error) {
	if nth/perSocket >= len(s.sockets) {
		socket, err := nats.Connect(s.url)
		if err != nil {
			return nil, err
		}
		s.sockets = append(s.sockets, socket)
	}
	return jetstream.New(s.sockets[nth/perSocket])
}

func (s *stream) prepare(messages int) error {
	js, err := s.socket(0)
	if err != nil {
		return err
	}
	ctx := context.Background()
	_ = js.DeleteStream(ctx, queue)
	s.log, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: queue, Subjects: []string{queue}, Storage: jetstream.FileStorage,
	})
	for sent := 0; err == nil && sent < messages; sent += batch {
		err = s.publish(js, batch)
	}
	return err
}

func (s *stream) publish(js jetstream.JetStream, count int) error {
	if count == 1 {
		_, err := js.Publish(context.Background(), queue, s.body)
		return err
	}
	promised := make([]jetstream.PubAckFuture, count)
	for nth := range promised {
		one, err := js.PublishAsync(queue, s.body)
		if err != nil {
			return err
		}
		promised[nth] = one
	}
	for _, one := range promised {
		select {
		case <-one.Ok():
		case err := <-one.Err():
			return err
		}
	}
	return nil
}

func (s *stream) caller(operation string, nth int) (caller, error) {
	js, err := s.socket(nth)
	if err != nil {
		return nil, err
	}
	switch operation {
	case "work":
		return s.worker(js)
	case "read":
		return s.reader(js)
	}
	count := 1
	if operation == "produce" {
		count = batch
	}
	return func() (int, error) { return count, s.publish(js, count) }, nil
}

func (s *stream) worker(js jetstream.JetStream) (caller, error) {
	ctx := context.Background()
	consumer, err := js.CreateOrUpdateConsumer(ctx, queue, jetstream.ConsumerConfig{
		Durable: "work", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 100_000,
	})
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		some, err := consumer.Fetch(10, jetstream.FetchMaxWait(5*time.Second))
		if err != nil {
			return 0, err
		}
		count := 0
		for message := range some.Messages() {
			if err := message.Ack(); err != nil {
				return count, err
			}
			count++
		}
		return count, some.Error()
	}, nil
}

func (s *stream) reader(js jetstream.JetStream) (caller, error) {
	consumer, err := js.OrderedConsumer(context.Background(), queue, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(5_000))
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		for range batch {
			if _, err := messages.Next(); err != nil {
				return 0, err
			}
		}
		return batch, nil
	}, nil
}
