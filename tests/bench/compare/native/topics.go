package main

import (
	"fmt"
	"sync"
	"time"
)

const (
	queues      = 10 // that each message of a topic is copied to
	many        = 100
	aheadOfMany = 1_000
	subject     = "order.created.eu"
	pattern     = "order.#"
	fanOutTime  = time.Minute
)

// topicBroker copies what is published to queues; consumer receives and acknowledges up to many copies of one.
type topicBroker interface {
	broker
	consumer(queue int) (caller, error)
}

func (t target) queue(nth int) string { return fmt.Sprintf("%s-%d", t.name, nth) }

// fanOut takes the time until all copies are acknowledged; the latencies are those of the calls that publish.
func fanOut(one broker, to target) (result, error) {
	topic, ok := one.(topicBroker)
	if !ok {
		return result{}, unsupported("fan-out")
	}
	consumers := make([]caller, queues)
	for nth := range consumers {
		call, err := topic.consumer(nth)
		if err != nil {
			return result{}, err
		}
		consumers[nth] = call
	}
	var wait sync.WaitGroup
	failures := make(chan error, queues)
	began := time.Now()
	for _, call := range consumers {
		wait.Go(func() { failures <- drain(call, to.limit) })
	}
	published, err := load(one, "fill", to, fanOutTime)
	if err == nil && published.Messages < to.limit {
		err = fmt.Errorf("%d messages were published within %v", published.Messages, fanOutTime)
	}
	if err != nil {
		return result{}, err
	}
	wait.Wait()
	for range queues {
		if err := <-failures; err != nil {
			return result{}, err
		}
	}
	published.Messages, published.Seconds = queues*to.limit, time.Since(began).Seconds()
	return published, nil
}

func drain(call caller, copies int) error {
	for copies > 0 {
		count, err := call()
		if err != nil {
			return err
		}
		copies -= count
	}
	return nil
}
