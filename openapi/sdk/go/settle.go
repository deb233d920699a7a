package millstream

import (
	"context"
	"net/http"
	"sync"
	"time"
)

type settlement struct {
	ReceiptHandle     string   `json:"receipt_handle"`
	Action            string   `json:"action"`
	Delay             *float64 `json:"delay_seconds,omitempty"`
	VisibilityTimeout *float64 `json:"visibility_timeout_seconds,omitempty"`
	Reason            string   `json:"reason,omitempty"`
	Details           string   `json:"details,omitempty"`
}

// Ack acknowledges the message, which deletes it.
func (m *Message) Ack(ctx context.Context) error {
	return m.settle(ctx, settlement{Action: "ack"})
}

// Nack says that the attempt failed: the message is redelivered after the queue's backoff, or becomes a dead letter.
func (m *Message) Nack(ctx context.Context, reason string) error {
	return m.settle(ctx, settlement{Action: "nack", Reason: reason})
}

// NackAfter is like Nack, with a delay instead of the queue's backoff.
func (m *Message) NackAfter(ctx context.Context, delay time.Duration, reason string) error {
	return m.settle(ctx, settlement{Action: "nack", Delay: secondsOf(delay), Reason: reason})
}

// Reject says that the message can never succeed: it becomes a dead letter with the reason.
func (m *Message) Reject(ctx context.Context, reason string) error {
	return m.settle(ctx, settlement{Action: "reject", Reason: reason})
}

// Release returns the message without counting an attempt; it is ready immediately.
func (m *Message) Release(ctx context.Context) error {
	return m.settle(ctx, settlement{Action: "release"})
}

// Extend keeps the message hidden for a time from now.
func (m *Message) Extend(ctx context.Context, timeout time.Duration) error {
	return m.settle(ctx, settlement{Action: "extend", VisibilityTimeout: secondsOf(timeout)})
}

func (m *Message) settle(ctx context.Context, settlement settlement) error {
	settlement.ReceiptHandle = m.ReceiptHandle
	err := m.queue.settler.settle(ctx, settlement)
	m.isSettled = m.isSettled || (err == nil && settlement.Action != "extend")
	return err
}

// settler sends settlements: those that are submitted during a call leave together in the next.
type settler struct {
	queue   *Queue
	mutex   sync.Mutex
	pending []submitted
	isBusy  bool
}

type submitted struct {
	settlement settlement
	result     chan error
}

// settle returns when the settlement was sent. Its error can be an *ItemError.
func (s *settler) settle(ctx context.Context, settlement settlement) error {
	result := make(chan error, 1)
	s.mutex.Lock()
	s.pending = append(s.pending, submitted{settlement, result})
	if !s.isBusy {
		s.isBusy = true
		go s.run(context.WithoutCancel(ctx))
	}
	s.mutex.Unlock()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *settler) run(ctx context.Context) {
	for {
		s.mutex.Lock()
		batch := s.pending[:min(len(s.pending), itemsMax)]
		s.pending = s.pending[len(batch):]
		s.isBusy = len(batch) > 0
		s.mutex.Unlock()
		if len(batch) == 0 {
			return
		}
		s.send(ctx, batch)
	}
}

func (s *settler) send(ctx context.Context, batch []submitted) {
	settlements := make([]settlement, len(batch))
	for at, one := range batch {
		settlements[at] = one.settlement
	}
	results, err := s.queue.settleAll(ctx, settlements)
	for at, one := range batch {
		switch {
		case err != nil:
			one.result <- err
		case results[at] != nil:
			one.result <- results[at]
		default:
			one.result <- nil
		}
	}
}

// settleAll settles deliveries in one call and returns the rejection of each, or nil.
func (q *Queue) settleAll(ctx context.Context, settlements []settlement) ([]*ItemError, error) {
	body := map[string]any{"settlements": settlements}
	settled, err := send[struct {
		Results []struct {
			Error *ItemError `json:"error"`
		} `json:"results"`
	}](ctx, q.client, call{method: http.MethodPost, path: q.path("settle"), body: body})
	refused := make([]*ItemError, len(settled.Results))
	for at, result := range settled.Results {
		refused[at] = result.Error
	}
	return refused, err
}
