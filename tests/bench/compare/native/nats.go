package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// jetStream is a stream in files, of one replica.
type jetStream struct {
	target
	// subject of what is published, and how long the stream has it.
	subject   string
	retention jetstream.RetentionPolicy
	sockets   []*nats.Conn
}

func newJetStream(to target) (broker, error) {
	return &jetStream{target: to, subject: to.name, retention: jetstream.LimitsPolicy}, nil
}

// newWorkQueue removes messages that were acknowledged.
func newWorkQueue(to target) (broker, error) {
	return &jetStream{target: to, subject: to.name, retention: jetstream.WorkQueuePolicy}, nil
}

func (s *jetStream) client(nth int) (jetstream.JetStream, error) {
	if nth/perSocket >= len(s.sockets) {
		socket, err := nats.Connect(s.url)
		if err != nil {
			return nil, err
		}
		s.sockets = append(s.sockets, socket)
	}
	return jetstream.New(s.sockets[nth/perSocket])
}

func (s *jetStream) create() error {
	client, err := s.client(0)
	if err != nil {
		return err
	}
	_, err = client.CreateStream(context.Background(), jetstream.StreamConfig{
		Name: s.name, Subjects: []string{s.name, s.name + ".>"}, Storage: jetstream.FileStorage, Retention: s.retention,
	})
	return err
}

func (s *jetStream) drop() error {
	client, err := s.client(0)
	if err != nil {
		return err
	}
	return client.DeleteStream(context.Background(), s.name)
}

func (s *jetStream) caller(operation string, nth int) (caller, error) {
	client, err := s.client(nth)
	if err != nil {
		return nil, err
	}
	switch operation {
	case "send":
		return func() (int, error) {
			_, err := client.Publish(context.Background(), s.subject, s.body)
			return 1, err
		}, nil
	case "produce":
		return func() (int, error) { return batch, s.publish(client) }, nil
	case "work":
		return s.worker(client)
	}
	return s.reader(client)
}

func (s *jetStream) publish(client jetstream.JetStream) error {
	promised := make([]jetstream.PubAckFuture, batch)
	for nth := range promised {
		one, err := client.PublishAsync(s.subject, s.body)
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

func (s *jetStream) worker(client jetstream.JetStream) (caller, error) {
	consumer, err := s.durable(client, "work")
	if err != nil {
		return nil, err
	}
	return fetcher(consumer, few), nil
}

func (s *jetStream) durable(client jetstream.JetStream, name string) (jetstream.Consumer, error) {
	return client.CreateOrUpdateConsumer(context.Background(), s.name, jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 100_000,
	})
}

func fetcher(consumer jetstream.Consumer, most int) caller {
	return func() (int, error) {
		some, err := consumer.Fetch(most, jetstream.FetchMaxWait(5*time.Second))
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
	}
}

func (s *jetStream) reader(client jetstream.JetStream) (caller, error) {
	var messages jetstream.MessagesContext
	left := s.limit / batch
	restart := func() error {
		if messages != nil {
			messages.Stop()
		}
		consumer, err := client.OrderedConsumer(context.Background(), s.name, jetstream.OrderedConsumerConfig{})
		if err == nil {
			messages, err = consumer.Messages(jetstream.PullMaxMessages(5_000))
		}
		return err
	}
	return func() (int, error) {
		if left--; left < 0 {
			if err := restart(); err != nil {
				return 0, err
			}
			left = s.limit/batch - 1
		}
		for range batch {
			if _, err := messages.Next(); err != nil {
				return 0, err
			}
		}
		return batch, nil
	}, restart()
}
