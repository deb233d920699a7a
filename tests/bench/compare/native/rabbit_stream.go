package main

import (
	"fmt"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

const (
	chunksAhead = 10
	socketBytes = 1 << 20 // the default of 8 KB is less than a packet of the loopback device, and stalls for seconds
)

// rabbitStream is a stream of RabbitMQ over its own protocol.
type rabbitStream struct {
	target
	environment *stream.Environment
}

func newRabbitStream(to target) (broker, error) {
	options := stream.NewEnvironmentOptions().SetUri(to.url).
		SetMaxProducersPerClient(perSocket).SetMaxConsumersPerClient(1).
		SetReadBuffer(socketBytes).SetWriteBuffer(socketBytes)
	environment, err := stream.NewEnvironment(options)
	return &rabbitStream{to, environment}, err
}

func (s *rabbitStream) create() error {
	return s.environment.DeclareStream(s.name, stream.NewStreamOptions())
}

func (s *rabbitStream) drop() error { return s.environment.DeleteStream(s.name) }

func (s *rabbitStream) caller(operation string, _ int) (caller, error) {
	switch operation {
	case "send":
		return s.producer(1)
	case "produce":
		return s.producer(batch)
	case "read":
		return s.reader()
	}
	return nil, unsupported(operation)
}

func (s *rabbitStream) producer(count int) (caller, error) {
	producer, err := s.environment.NewProducer(s.name, stream.NewProducerOptions())
	if err != nil {
		return nil, err
	}
	confirmations := producer.NotifyPublishConfirmation()
	return func() (int, error) {
		messages := make([]message.StreamMessage, count)
		for nth := range messages {
			messages[nth] = amqp.NewMessage(s.body)
		}
		if err := producer.BatchSend(messages); err != nil {
			return 0, err
		}
		for confirmed := 0; confirmed < count; {
			for _, one := range <-confirmations {
				if !one.IsConfirmed() {
					return confirmed, fmt.Errorf("not confirmed: %v", one.GetError())
				}
				confirmed++
			}
		}
		return count, nil
	}, nil
}

// reader counts what is pushed to it; credit makes the broker wait for the caller.
func (s *rabbitStream) reader() (caller, error) {
	var batches chan struct{}
	var consumer *stream.Consumer
	restart := func() (err error) {
		if consumer != nil {
			if err = consumer.Close(); err != nil {
				return err
			}
		}
		arrived, read := make(chan struct{}), 0
		handle := func(stream.ConsumerContext, *amqp.Message) {
			if read++; read%batch == 0 {
				arrived <- struct{}{}
			}
		}
		options := stream.NewConsumerOptions().SetInitialCredits(chunksAhead).
			SetOffset(stream.OffsetSpecification{}.First())
		batches = arrived
		consumer, err = s.environment.NewConsumer(s.name, handle, options)
		return err
	}
	left := s.limit / batch
	return func() (int, error) {
		if left--; left < 0 {
			if err := restart(); err != nil {
				return 0, err
			}
			left = s.limit/batch - 1
		}
		<-batches
		return batch, nil
	}, restart()
}
