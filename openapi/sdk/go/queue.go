package millstream

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"

	"millstream/core"
)

// Queue is a queue, whether it exists or not.
type Queue struct {
	client  *Client
	name    string
	settler settler
}

func newQueue(client *Client, name string) *Queue {
	queue := &Queue{client: client, name: name}
	queue.settler.queue = queue
	return queue
}

// Name returns the name of the queue.
func (q *Queue) Name() string { return q.name }

func (q *Queue) path(words ...string) []string { return append([]string{"queues", q.name}, words...) }

// Create creates the queue. If it exists with these settings, it is returned with Created false;
// settings that differ are [ErrAlreadyExists]. Settings that you leave out are not compared.
func (q *Queue) Create(ctx context.Context, config core.QueueConfig) (core.QueueStored, error) {
	return create[core.QueueStored](ctx, q.client, config, q.path()...)
}

// Apply creates the queue or replaces its configuration; Changes has the fields that differed.
func (q *Queue) Apply(ctx context.Context, config core.QueueConfig) (core.QueueStored, error) {
	return send[core.QueueStored](ctx, q.client, call{method: http.MethodPut, path: q.path(), body: config})
}

// Stats returns exact message counts by state.
func (q *Queue) Stats(ctx context.Context) (core.QueueStatsOut, error) {
	return send[core.QueueStatsOut](ctx, q.client, call{method: http.MethodGet, path: q.path("stats")})
}

// Delete deletes the queue and its messages.
func (q *Queue) Delete(ctx context.Context) error {
	_, err := send[struct{}](ctx, q.client, call{method: http.MethodDelete, path: q.path()})
	return err
}

// ── Sending ──

// NewMessage is a message with more than a body.
type NewMessage struct {
	// Body: bytes, text, or any value with a JSON form.
	Body        any
	Headers     map[string]string
	ContentType string
	Group       string
	DedupID     string
	Delay       time.Duration
	TTL         time.Duration
	Priority    int
	// IdempotencyKey makes sends of several processes, or of one that restarted, one send.
	IdempotencyKey string
}

// Sent is the id and offset of a sent message. Duplicate: it had been sent before, and nothing was added.
type Sent struct {
	ID        string `json:"id"`
	Offset    int64  `json:"offset"`
	Duplicate bool   `json:"duplicate"`
}

type outMessage struct {
	Body        []byte            `json:"body_base64"`
	Headers     map[string]string `json:"headers,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Group       string            `json:"group,omitempty"`
	DedupID     string            `json:"dedup_id,omitempty"`
	Delay       *float64          `json:"delay_seconds,omitempty"`
	TTL         float64           `json:"ttl_seconds,omitempty"`
	Priority    int               `json:"priority,omitempty"`
}

func (m NewMessage) encode() (outMessage, error) {
	body, kind, err := encodeBody(m.Body, m.ContentType)
	out := outMessage{
		Body: body, Headers: m.Headers, ContentType: kind, Group: m.Group, DedupID: m.DedupID,
		TTL: m.TTL.Seconds(), Priority: m.Priority,
	}
	if m.Delay > 0 {
		out.Delay = secondsOf(m.Delay)
	}
	if out.Body == nil {
		out.Body = []byte{} // null is not base64
	}
	return out, err
}

func secondsOf(duration time.Duration) *float64 {
	seconds := duration.Seconds()
	return &seconds
}

// Send sends one message: bytes, text, any value with a JSON form, or a [NewMessage].
func (q *Queue) Send(ctx context.Context, body any) (Sent, error) {
	message, ok := body.(NewMessage)
	if !ok {
		message = NewMessage{Body: body}
	}
	out, err := message.encode()
	if err != nil {
		return Sent{}, err
	}
	sent, err := q.send(ctx, []outMessage{out}, message.IdempotencyKey)
	if err != nil {
		return Sent{}, err
	}
	return sent[0], nil
}

// SendMany sends messages in as few calls as possible, each all or nothing. Their idempotency keys are not used.
func (q *Queue) SendMany(ctx context.Context, messages ...NewMessage) ([]Sent, error) {
	encoded := make([]outMessage, len(messages))
	for at, message := range messages {
		out, err := message.encode()
		if err != nil {
			return nil, err
		}
		encoded[at] = out
	}
	var all []Sent
	for _, batch := range batches(encoded, func(out outMessage) int { return len(out.Body) }) {
		sent, err := q.send(ctx, batch, "")
		if err != nil {
			return all, err
		}
		all = append(all, sent...)
	}
	return all, nil
}

func (q *Queue) send(ctx context.Context, batch []outMessage, key string) ([]Sent, error) {
	header := http.Header{idempotencyKey: {valueOr(key, randomKey())}}
	body := map[string]any{"messages": batch}
	sent, err := send[struct {
		Messages []Sent `json:"messages"`
	}](ctx, q.client, call{http.MethodPost, q.path("messages"), nil, header, body})
	return sent.Messages, err
}

// ── Receiving ──

// Receive are the options of a receive.
type Receive struct {
	// Max is the maximum number of messages; the default is 1.
	Max int
	// Wait is the time to wait for the first message; 0: the queue's default. Negative: do not wait.
	Wait time.Duration
	// VisibilityTimeout is how long the messages stay hidden; 0: the queue's default.
	VisibilityTimeout time.Duration
}

// Receive returns messages, waiting for the first; none means that none arrived.
func (q *Queue) Receive(ctx context.Context, options Receive) ([]*Message, error) {
	body := map[string]any{"messages_max": max(options.Max, 1), "attempt_id": randomKey()}
	if options.Wait != 0 {
		body["wait_seconds"] = max(options.Wait, 0).Seconds()
	}
	if options.VisibilityTimeout != 0 {
		body["visibility_timeout_seconds"] = options.VisibilityTimeout.Seconds()
	}
	received, err := send[struct {
		Messages []*Message `json:"messages"`
	}](ctx, q.client, call{method: http.MethodPost, path: q.path("receive"), body: body})
	for _, message := range received.Messages {
		message.queue = q
	}
	return received.Messages, err
}

// ── Dead letters ──

// DeadLetters lists the dead letters, oldest first.
func (q *Queue) DeadLetters(ctx context.Context) iter.Seq2[core.DeadLetterOut, error] {
	return func(yield func(core.DeadLetterOut, error) bool) {
		query := url.Values{}
		for {
			page, err := send[core.DeadLetters](ctx, q.client, call{
				method: http.MethodGet, path: q.path("dead-letters"), query: query,
			})
			for _, letter := range page.Items {
				if !yield(letter, nil) {
					return
				}
			}
			if err != nil {
				yield(core.DeadLetterOut{}, err)
				return
			}
			if page.GetNextCursor() == "" {
				return
			}
			query.Set("cursor", page.GetNextCursor())
		}
	}
}

// Message is a received message, leased to its receiver until VisibleAt.
type Message struct {
	ID            string
	Body          []byte
	ContentType   string
	Headers       map[string]string
	Group         string
	DedupID       string
	Offset        int64
	SentAt        time.Time
	VisibleAt     time.Time
	ReceiveCount  int
	Failures      int
	ReceiptHandle string

	queue     *Queue
	isSettled bool
}

// UnmarshalJSON decodes a message of the REST API.
func (m *Message) UnmarshalJSON(data []byte) error {
	var in struct {
		ID            string            `json:"id"`
		Body          json.RawMessage   `json:"body"`
		BodyBase64    string            `json:"body_base64"`
		ContentType   string            `json:"content_type"`
		Headers       map[string]string `json:"headers"`
		Group         string            `json:"group"`
		DedupID       string            `json:"dedup_id"`
		Offset        int64             `json:"offset"`
		SentAt        time.Time         `json:"sent_at"`
		VisibleAt     time.Time         `json:"visible_at"`
		ReceiveCount  int               `json:"receive_count"`
		Failures      int               `json:"failures"`
		ReceiptHandle string            `json:"receipt_handle"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	body, err := decodeBody(in.Body, in.BodyBase64, in.ContentType)
	*m = Message{
		ID: in.ID, Body: body, ContentType: in.ContentType, Headers: in.Headers, Group: in.Group,
		DedupID: in.DedupID, Offset: in.Offset, SentAt: in.SentAt, VisibleAt: in.VisibleAt,
		ReceiveCount: in.ReceiveCount, Failures: in.Failures, ReceiptHandle: in.ReceiptHandle,
	}
	return err
}

// Text returns the body as text.
func (m *Message) Text() string { return string(m.Body) }

// JSON decodes the body.
func (m *Message) JSON(value any) error { return json.Unmarshal(m.Body, value) }
