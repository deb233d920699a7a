package main

import "github.com/nats-io/nats.go/jetstream"

// jetStreamTopic is a stream with ten durable consumers, which removes what all of them have acknowledged.
type jetStreamTopic struct{ jetStream }

func newJetStreamTopic(to target) (broker, error) {
	own := to.name + "." + subject
	return &jetStreamTopic{jetStream{target: to, subject: own, retention: jetstream.InterestPolicy}}, nil
}

func (t *jetStreamTopic) create() error {
	if err := t.jetStream.create(); err != nil {
		return err
	}
	client, err := t.client(0)
	if err != nil {
		return err
	}
	for nth := range queues {
		if _, err := t.durable(client, t.queue(nth)); err != nil {
			return err
		}
	}
	return nil
}

func (t *jetStreamTopic) consumer(queue int) (caller, error) {
	client, err := t.client(queue)
	if err != nil {
		return nil, err
	}
	consumer, err := t.durable(client, t.queue(queue))
	return fetcher(consumer, many), err
}
