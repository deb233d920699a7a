// Command compare loads a broker through its own client, and prints what it did as one line of JSON.
//
// Operations, each by so many callers at once:
//
//	create  make the queue or log of this name
//	drop    delete it
//	fill    append messages in batches until there are -limit of them, or the time is over
//	send    one message, and wait until it is acknowledged
//	work    receive and acknowledge ten, until -limit are received or the time is over
//	produce 500 messages, and wait until all are acknowledged
//	read    500 messages in order, of the -limit that there are; from the first again at the end
//	fan-out publish -limit messages, and acknowledge the copies of each in ten queues
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A caller does one call at a time and says how many messages that was.
type caller func() (int, error)

type broker interface {
	create() error
	drop() error
	caller(operation string, nth int) (caller, error)
}

type target struct {
	url, name string
	body      []byte
	// callers at once, and messages that there are.
	callers, limit int
}

type result struct {
	Messages int     `json:"messages"`
	Calls    int     `json:"calls"`
	Seconds  float64 `json:"seconds"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
}

const (
	few       = 10  // messages of a call of work
	batch     = 500 // messages of a call of produce and read
	perSocket = 8   // callers that share a connection, where clients do not decide that
)

var brokers = map[string]func(target) (broker, error){
	"rabbitmq":        newQuorumQueue,
	"rabbitmq-topic":  newTopicExchange,
	"rabbitmq-stream": newRabbitStream,
	"nats":            newJetStream,
	"nats-work-queue": newWorkQueue,
	"nats-topic":      newJetStreamTopic,
	"millstream":      newMillstreamTopic,
	"kafka":           newKafkaTopic,
	"redis":           newRedisStream,
	"postgres":        newTable,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var to target
	kind := flag.String("broker", "", "kind of broker")
	operation := flag.String("operation", "", "what to do")
	seconds := flag.Float64("seconds", 1, "time of it")
	size := flag.Int("size", 256, "bytes of a message")
	flag.StringVar(&to.url, "url", "", "address")
	flag.StringVar(&to.name, "name", "compare", "queue or log")
	flag.IntVar(&to.callers, "callers", 1, "calls at once")
	flag.IntVar(&to.limit, "limit", 0, "messages at most, or that there are")
	flag.Parse()
	to.body = make([]byte, *size)
	for nth := range to.body {
		to.body[nth] = 'm'
	}
	open, known := brokers[*kind]
	if !known {
		return fmt.Errorf("no such broker: %q", *kind)
	}
	one, err := open(to)
	if err != nil {
		return err
	}
	switch *operation {
	case "create":
		return print(result{}, one.create())
	case "drop":
		return print(result{}, one.drop())
	case "fan-out":
		return print(fanOut(one, to))
	}
	found, err := load(one, *operation, to, time.Duration(*seconds*float64(time.Second)))
	return print(found, err)
}

func print(found result, err error) error {
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// claims are the messages that callers may still send or receive.
type claims struct {
	left    atomic.Int64
	bounded bool
}

func (c *claims) take(count int) bool {
	return !c.bounded || c.left.Add(int64(-count)) >= 0
}

func load(one broker, operation string, to target, length time.Duration) (result, error) {
	step := map[string]int{"send": 1, "work": few, "produce": batch, "fill": batch, "read": batch}[operation]
	if step == 0 {
		return result{}, fmt.Errorf("no such operation: %q", operation)
	}
	left := claims{bounded: operation == "work" || operation == "fill"}
	left.left.Store(int64(to.limit))
	if operation == "fill" {
		operation = "produce"
	}
	ready := make([]caller, to.callers)
	for nth := range ready {
		call, err := one.caller(operation, nth)
		if err != nil {
			return result{}, err
		}
		ready[nth] = call
	}
	var wait sync.WaitGroup
	var lock sync.Mutex
	var times []float64
	var failed error
	messages := 0
	began := time.Now()
	until := began.Add(length)
	for _, call := range ready {
		wait.Go(func() {
			count, own, err := repeat(call, until, func() bool { return left.take(step) })
			lock.Lock()
			defer lock.Unlock()
			messages += count
			times = append(times, own...)
			if err != nil {
				failed = err
			}
		})
	}
	wait.Wait()
	took := time.Since(began).Seconds()
	if failed != nil || len(times) == 0 {
		return result{}, fmt.Errorf("%d calls were done: %v", len(times), failed)
	}
	slices.Sort(times)
	return result{messages, len(times), took, times[len(times)/2], times[len(times)*99/100]}, nil
}

func repeat(call caller, until time.Time, mayCall func() bool) (int, []float64, error) {
	messages, times := 0, []float64{}
	for began := time.Now(); began.Before(until) && mayCall(); {
		count, err := call()
		if err != nil {
			return messages, times, err
		}
		now := time.Now()
		messages += count
		times = append(times, float64(now.Sub(began).Microseconds())/1e3)
		began = now
	}
	return messages, times, nil
}

// unsupported is said of what a broker has no call for.
func unsupported(operation string) error {
	return fmt.Errorf("there is no call to %s", operation)
}
