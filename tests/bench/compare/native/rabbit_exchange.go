package main

import amqp "github.com/rabbitmq/amqp091-go"

// topicExchange has bindings of quorum queues; a message is confirmed when all of them have it.
type topicExchange struct{ quorumQueue }

func newTopicExchange(to target) (broker, error) {
	return &topicExchange{quorumQueue{target: to, exchange: to.name, key: subject}}, nil
}

func (e *topicExchange) create() error {
	channel, err := e.channel(0)
	if err != nil {
		return err
	}
	if err := channel.ExchangeDeclare(e.name, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		return err
	}
	for nth := range queues {
		if err := declare(channel, e.queue(nth)); err != nil {
			return err
		}
		if err := channel.QueueBind(e.queue(nth), pattern, e.name, false, nil); err != nil {
			return err
		}
	}
	return nil
}

func (e *topicExchange) drop() error {
	channel, err := e.channel(0)
	if err != nil {
		return err
	}
	for nth := range queues {
		if _, err := channel.QueueDelete(e.queue(nth), false, false, false); err != nil {
			return err
		}
	}
	return channel.ExchangeDelete(e.name, false, false)
}

func (e *topicExchange) consumer(queue int) (caller, error) {
	channel, err := e.channel(queue)
	if err != nil {
		return nil, err
	}
	return consume(channel, e.queue(queue), many, aheadOfMany)
}
