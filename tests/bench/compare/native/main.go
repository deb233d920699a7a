// Command compare loads RabbitMQ or NATS JetStream through its own client, and prints what it did as one line of JSON.
//
//	compare rabbitmq|nats URL OPERATION SECONDS BYTES CALLERS WORD
//
// Operations, each by CALLERS callers at once, a connection for each eight of them:
//
//	send    one message, and wait until it is confirmed
//	work    receive and acknowledge; there must be enough to receive
//	produce 500 messages, and wait until all are confirmed
//	read    messages in order, from the first on, nothing acknowledged (NATS)
//
// WORD: the kind of a RabbitMQ queue, classic or quorum; nothing for NATS.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
)

// A caller does one call at a time and says how many messages that was.
type caller func() (int, error)

type broker interface {
	// prepare makes what is needed, with so many messages in it.
	prepare(messages int) error
	caller(operation string, nth int) (caller, error)
}

type result struct {
	Messages int     `json:"messages"`
	Calls    int     `json:"calls"`
	Seconds  float64 `json:"seconds"`
	P99      float64 `json:"p99_ms"`
	P50      float64 `json:"p50_ms"`
}

const batch = 500

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 6 {
		return fmt.Errorf("rabbitmq|nats URL OPERATION SECONDS BYTES CALLERS [WORD]")
	}
	operation := args[2]
	seconds, _ := strconv.ParseFloat(args[3], 64)
	size, _ := strconv.Atoi(args[4])
	callers, _ := strconv.Atoi(args[5])
	body := make([]byte, size)
	for nth := range body {
		body[nth] = 'm'
	}
	var broker broker
	if args[0] == "rabbitmq" {
		broker = &rabbit{url: args[1], body: body, kind: args[6]}
	} else {
		broker = &stream{url: args[1], body: body}
	}
	filled := 0
	if operation == "work" || operation == "read" {
		filled = int(seconds * 120_000)
	}
	if err := broker.prepare(filled); err != nil {
		return err
	}
	found, err := load(broker, operation, callers, time.Duration(seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func load(broker broker, operation string, callers int, length time.Duration) (result, error) {
	ready := make([]caller, callers)
	for nth := range ready {
		one, err := broker.caller(operation, nth)
		if err != nil {
			return result{}, err
		}
		ready[nth] = one
	}
	var wait sync.WaitGroup
	var lock sync.Mutex
	var times []float64
	var failed error
	messages := 0
	began := time.Now()
	until := began.Add(length)
	for _, call := range ready {
		wait.Add(1)
		go func() {
			defer wait.Done()
			count, own, err := repeat(call, until)
			lock.Lock()
			defer lock.Unlock()
			messages += count
			times = append(times, own...)
			if err != nil {
				failed = err
			}
		}()
	}
	wait.Wait()
	took := time.Since(began).Seconds()
	if len(times) == 0 {
		return result{}, fmt.Errorf("nothing was done: %v", failed)
	}
	sort.Float64s(times)
	return result{messages, len(times), took, times[len(times)*99/100], times[len(times)/2]}, failed
}

func repeat(call caller, until time.Time) (int, []float64, error) {
	messages, times := 0, []float64{}
	for began := time.Now(); began.Before(until); {
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
