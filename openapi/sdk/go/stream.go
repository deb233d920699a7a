package millstream

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"millstream/core"
)

const readWait = 20 * time.Second

// Stream is a stream, whether it exists or not.
type Stream struct {
	client *Client
	name   string
	// OnGap is called when records that retention deleted are skipped. The default logs a warning.
	OnGap func(Gap)
}

// Name returns the name of the stream.
func (s *Stream) Name() string { return s.name }

func (s *Stream) path(words ...string) []string { return append([]string{"streams", s.name}, words...) }

// Create creates the stream. If it exists with these settings, it is returned with Created false;
// settings that differ are [ErrAlreadyExists]. Settings that you leave out are not compared.
func (s *Stream) Create(ctx context.Context, config core.StreamConfig) (core.StreamStored, error) {
	return create[core.StreamStored](ctx, s.client, config, s.path()...)
}

// Apply creates the stream or replaces its configuration; Changes has the fields that differed.
func (s *Stream) Apply(ctx context.Context, config core.StreamConfig) (core.StreamStored, error) {
	return send[core.StreamStored](ctx, s.client, call{method: http.MethodPut, path: s.path(), body: config})
}

// Delete deletes the stream and its records.
func (s *Stream) Delete(ctx context.Context) error {
	_, err := send[struct{}](ctx, s.client, call{method: http.MethodDelete, path: s.path()})
	return err
}

// ── Appending ──

// NewRecord is a record to append.
type NewRecord struct {
	// Data: bytes, text, or any value with a JSON form.
	Data any
	// Key: records with the same key stay in one shard, in order.
	Key         string
	Headers     map[string]string
	ContentType string
	EventTime   time.Time
}

// Appended is the position of a record. Duplicate: it had been appended before, and nothing was added.
type Appended struct {
	Shard     int   `json:"shard"`
	Offset    int64 `json:"offset"`
	Duplicate bool  `json:"duplicate"`
}

type outRecord struct {
	Data        []byte            `json:"data_base64"`
	Key         string            `json:"key,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	EventTime   *time.Time        `json:"event_time,omitempty"`
}

func (r NewRecord) encode() (outRecord, error) {
	data, kind, err := encodeBody(r.Data, r.ContentType)
	out := outRecord{Data: data, Key: r.Key, Headers: r.Headers, ContentType: kind}
	if !r.EventTime.IsZero() {
		moment := r.EventTime.UTC().Truncate(time.Millisecond)
		out.EventTime = &moment
	}
	if out.Data == nil {
		out.Data = []byte{}
	}
	return out, err
}

// Append appends one record: bytes, text, any value with a JSON form, or a [NewRecord].
func (s *Stream) Append(ctx context.Context, data any) (Appended, error) {
	record, ok := data.(NewRecord)
	if !ok {
		record = NewRecord{Data: data}
	}
	appended, err := s.AppendMany(ctx, record)
	if err != nil {
		return Appended{}, err
	}
	return appended[0], nil
}

// AppendMany appends records in as few calls as possible. Records that are rejected for now are appended again;
// the error for others is a *PartialError.
func (s *Stream) AppendMany(ctx context.Context, records ...NewRecord) ([]Appended, error) {
	encoded := make([]outRecord, len(records))
	for at, record := range records {
		out, err := record.encode()
		if err != nil {
			return nil, err
		}
		encoded[at] = out
	}
	all, refused := []Appended{}, []*ItemError{}
	for _, batch := range batches(encoded, func(out outRecord) int { return len(out.Data) }) {
		results, err := s.append(ctx, batch)
		if err != nil {
			return all, err
		}
		for _, result := range results {
			all, refused = append(all, result.Appended), append(refused, result.Error)
		}
	}
	return all, partial(refused)
}

type appendResult struct {
	Appended
	Error *ItemError `json:"error"`
}

// append sends a batch until no record is rejected for now; its key adds each record once.
func (s *Stream) append(ctx context.Context, batch []outRecord) ([]appendResult, error) {
	header := http.Header{idempotencyKey: {randomKey()}}
	body := map[string]any{"records": batch}
	limits := s.client.retries
	state := &attempts{retries: limits, service: &reachability{logger: s.client.logger}, startedAt: time.Now(), mayRepeat: true}
	state.service.isEstablished.Store(true)
	for {
		appended, err := send[struct {
			Records []appendResult `json:"records"`
		}](ctx, s.client, call{http.MethodPost, s.path("records"), nil, header, body})
		if err != nil || !anyRetryable(appended.Records) {
			return appended.Records, err
		}
		pause, final := state.pauseAfter(&Error{Detail: "Records were rejected for now", Retryable: true})
		if final != nil {
			return appended.Records, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return appended.Records, err
		}
	}
}

func anyRetryable(results []appendResult) bool {
	for _, result := range results {
		if result.Error != nil && result.Error.Retryable {
			return true
		}
	}
	return false
}

// ── Reading ──

// Position is where a read begins.
type Position struct{ query url.Values }

// Earliest is the oldest record.
var Earliest = Position{url.Values{"from": {"earliest"}}}

// Latest is after the newest record.
var Latest = Position{url.Values{"from": {"latest"}}}

// Since is the first record that arrived at or after a time.
func Since(moment time.Time) Position {
	return Position{url.Values{"time": {moment.UTC().Format("2006-01-02T15:04:05.000Z")}}}
}

// After is the position that a [Page] ended at.
func After(cursor string) Position { return Position{url.Values{"cursor": {cursor}}} }

// Page has records of all shards by arrival; continue with [After] its NextCursor.
type Page struct {
	Records       []Record `json:"records"`
	NextCursor    string   `json:"next_cursor"`
	BehindSeconds float64  `json:"behind_seconds"`
	Gaps          []Gap    `json:"gaps"`
}

// Read yields the records that there are.
func (s *Stream) Read(ctx context.Context, from Position) iter.Seq2[Record, error] {
	return s.records(s.Pages(ctx, from, false))
}

// Follow yields records, and waits for more until the context ends.
func (s *Stream) Follow(ctx context.Context, from Position) iter.Seq2[Record, error] {
	return s.records(s.Pages(ctx, from, true))
}

func (s *Stream) records(pages iter.Seq2[*Page, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for page, err := range pages {
			if err != nil {
				yield(Record{}, err)
				return
			}
			s.client.warnOf(page.Gaps, s.OnGap)
			for _, record := range page.Records {
				if !yield(record, nil) {
					return
				}
			}
		}
	}
}

func (c *Client) warnOf(gaps []Gap, onGap func(Gap)) {
	for _, gap := range gaps {
		if onGap != nil {
			onGap(gap)
		} else {
			c.logger.Warn("records are gone", "shard", gap.Shard, "first", gap.First, "next", gap.Next, "reason", gap.Reason)
		}
	}
}

// Pages yields records in pages. With follow, it waits for more until the context ends.
func (s *Stream) Pages(ctx context.Context, from Position, follow bool) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		for {
			isPlaced := from.query.Get("from") != "latest" // a repeat of this one would begin later
			page, err := s.readPage(ctx, from, follow && isPlaced)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page.Records) > 0 || len(page.Gaps) > 0 {
				if !yield(page, nil) {
					return
				}
			} else if !follow && page.NextCursor == from.query.Get("cursor") {
				return
			}
			from = After(page.NextCursor)
		}
	}
}

func (s *Stream) readPage(ctx context.Context, from Position, follow bool) (*Page, error) {
	query := url.Values{"limit": {"1000"}}
	for name, values := range from.query {
		query[name] = values
	}
	if follow {
		query.Set("wait_seconds", strconv.FormatFloat(readWait.Seconds(), 'f', -1, 64))
	}
	page, err := send[Page](ctx, s.client, call{method: http.MethodGet, path: s.path("records"), query: query})
	return &page, err
}
