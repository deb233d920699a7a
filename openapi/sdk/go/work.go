package millstream

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Handler works on one message. Its context ends when the worker's grace period does.
type Handler func(ctx context.Context, message *Message) error

// RetryError is returned by a handler to retry the message after a delay.
type RetryError struct {
	Delay time.Duration
	Cause error
}

func (e *RetryError) Error() string { return fmt.Sprintf("retry after %s: %v", e.Delay, e.Cause) }
func (e *RetryError) Unwrap() error { return e.Cause }

// Retry returns the error with which a handler has its message retried after a delay.
func Retry(delay time.Duration, cause error) error { return &RetryError{delay, cause} }

// RejectError is returned by a handler for a permanent failure.
type RejectError struct{ Reason string }

func (e *RejectError) Error() string { return e.Reason }

// Reject returns the error with which a handler makes its message a dead letter.
func Reject(reason string) error { return &RejectError{reason} }

// WorkOption sets an option of a worker.
type WorkOption func(*worker)

// Concurrency sets the maximum number of messages in progress. The default is 1.
func Concurrency(messages int) WorkOption {
	return func(w *worker) { w.concurrency = max(messages, 1) }
}

// Lease sets how long a message stays hidden without an extension. The default is 30 seconds.
func Lease(lease time.Duration) WorkOption { return func(w *worker) { w.lease = lease } }

// Grace sets how long messages in progress may take once the worker is stopped. The default is 25 seconds.
func Grace(grace time.Duration) WorkOption { return func(w *worker) { w.grace = grace } }

const (
	workWait           = 20 * time.Second
	workPause          = time.Second            // after a receive that failed, with all its retries
	lastReceive        = 500 * time.Millisecond // a receive that is to end may still return messages
	reasonBytesMax     = 1_024
	detailsBytesMax    = 4_096
	extensionsPerLease = 3
)

// worker passes messages to a handler.
//
//	receive as many as there is capacity for -> handler -> nil: ack
//	                                                       Retry: nack, after its delay
//	                                                       Reject: dead letter
//	                                                       other error, panic: nack, with the queue's backoff
//
// Every third of the lease all messages in progress are extended, in one call.
type worker struct {
	queue       *Queue
	handler     Handler
	concurrency int
	lease       time.Duration
	grace       time.Duration

	mutex      sync.Mutex
	inProgress map[*Message]struct{}
	capacity   chan struct{}
	running    sync.WaitGroup
}

// Work passes messages to the handler until the context ends: then it receives no more, lets messages in
// progress finish within the grace period, and returns nil. It returns an error if the queue was deleted or
// cannot be read.
func (q *Queue) Work(ctx context.Context, handler Handler, options ...WorkOption) error {
	w := &worker{
		queue: q, handler: handler, concurrency: 1, lease: 30 * time.Second, grace: 25 * time.Second,
		inProgress: map[*Message]struct{}{},
	}
	for _, option := range options {
		option(w)
	}
	w.capacity = make(chan struct{}, w.concurrency)
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go w.extendLeases(working)
	err := w.receiveUntil(ctx, working)
	w.finish(cancel)
	return err
}

func (w *worker) receiveUntil(ctx, working context.Context) error {
	receiving, cancel := context.WithCancel(working)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastReceive, cancel) })
	defer stop()
	for {
		room, ok := w.reserve(ctx)
		if !ok {
			return nil
		}
		messages, err := w.queue.Receive(receiving, Receive{Max: room, Wait: workWait, VisibilityTimeout: w.lease})
		for range room - len(messages) {
			<-w.capacity
		}
		for _, message := range messages {
			w.begin(working, message)
		}
		if err != nil && ctx.Err() == nil {
			if err := w.pauseAfter(ctx, err); err != nil {
				return err
			}
		}
	}
}

// reserve waits for capacity and takes all that there is; it returns false if the context ended.
func (w *worker) reserve(ctx context.Context) (int, bool) {
	if ctx.Err() != nil {
		return 0, false
	}
	select {
	case <-ctx.Done():
		return 0, false
	case w.capacity <- struct{}{}:
	}
	for room := 1; ; room++ {
		if room == itemsMax {
			return room, true
		}
		select {
		case w.capacity <- struct{}{}:
		default:
			return room, true
		}
	}
}

// pauseAfter returns the error of a receive if it is permanent.
func (w *worker) pauseAfter(ctx context.Context, err error) error {
	var failure *Error
	if !errors.As(err, &failure) || !failure.Retryable {
		return err
	}
	w.queue.client.logger.Warn("receive failed", "queue", w.queue.name, "error", err)
	_ = sleep(ctx, workPause)
	return nil
}

func (w *worker) begin(ctx context.Context, message *Message) {
	w.mutex.Lock()
	w.inProgress[message] = struct{}{}
	w.mutex.Unlock()
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		w.work(ctx, message)
		w.mutex.Lock()
		delete(w.inProgress, message)
		w.mutex.Unlock()
		<-w.capacity
	}()
}

func (w *worker) work(ctx context.Context, message *Message) {
	verdict := w.verdict(ctx, message)
	if message.isSettled {
		return
	}
	if err := message.settle(context.WithoutCancel(ctx), verdict); err != nil {
		w.queue.client.logger.Warn(verdict.Action+" failed", "queue", w.queue.name, "message", message.ID, "error", err)
	}
}

func (w *worker) verdict(ctx context.Context, message *Message) (verdict settlement) {
	defer func() {
		if reason := recover(); reason != nil {
			w.queue.client.logger.Error("handler panicked", "queue", w.queue.name, "message", message.ID, "panic", reason)
			verdict = settlement{
				Action: "nack", Reason: start(fmt.Sprint(reason), reasonBytesMax),
				Details: start(string(debug.Stack()), detailsBytesMax),
			}
		}
	}()
	err := w.handler(ctx, message)
	var retry *RetryError
	var reject *RejectError
	switch {
	case err == nil:
		return settlement{Action: "ack"}
	case errors.As(err, &reject):
		return settlement{Action: "reject", Reason: start(err.Error(), reasonBytesMax)}
	case errors.As(err, &retry):
		return settlement{Action: "nack", Delay: secondsOf(retry.Delay), Reason: start(fmt.Sprint(retry.Cause), reasonBytesMax)}
	case ctx.Err() != nil:
		return settlement{Action: "release"}
	}
	w.queue.client.logger.Error("handler failed", "queue", w.queue.name, "message", message.ID, "error", err)
	return settlement{Action: "nack", Reason: start(err.Error(), reasonBytesMax)}
}

func start(text string, bytesMax int) string {
	if len(text) <= bytesMax {
		return text
	}
	for bytesMax > 0 && text[bytesMax]&0xC0 == 0x80 { // not inside a character
		bytesMax--
	}
	return text[:bytesMax]
}

// extendLeases keeps the messages in progress hidden.
func (w *worker) extendLeases(ctx context.Context) {
	for sleep(ctx, w.lease/extensionsPerLease) == nil {
		extensions := w.extensions()
		for len(extensions) > 0 {
			batch := extensions[:min(len(extensions), itemsMax)]
			extensions = extensions[len(batch):]
			limited, cancel := context.WithTimeout(ctx, w.lease/extensionsPerLease)
			if _, err := w.queue.settleAll(limited, batch); err != nil && ctx.Err() == nil {
				w.queue.client.logger.Warn("extending leases failed", "queue", w.queue.name, "error", err)
			}
			cancel()
		}
	}
}

func (w *worker) extensions() []settlement {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	extensions := make([]settlement, 0, len(w.inProgress))
	for message := range w.inProgress {
		extensions = append(extensions, settlement{
			ReceiptHandle: message.ReceiptHandle, Action: "extend", VisibilityTimeout: secondsOf(w.lease),
		})
	}
	return extensions
}

// finish waits for messages in progress; after the grace period their contexts end, and they are released.
func (w *worker) finish(cancel context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		w.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(w.grace):
		cancel()
	}
	select {
	case <-done:
	case <-time.After(time.Second): // a handler that ignores its context: its message returns after its lease
	}
}
