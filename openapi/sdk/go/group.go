package millstream

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"millstream/core"
)

// Group is a consumer group, whether it exists or not.
type Group struct {
	client *Client
	name   string
}

// Name returns the name of the group.
func (g *Group) Name() string { return g.name }

func (g *Group) path(words ...string) []string { return append([]string{"groups", g.name}, words...) }

// Create creates the group. If it exists with these settings, it is returned with Created false;
// settings that differ are [ErrAlreadyExists]. Settings that you leave out are not compared.
func (g *Group) Create(ctx context.Context, config core.GroupConfig) (core.GroupStored, error) {
	return create[core.GroupStored](ctx, g.client, config, g.path()...)
}

// Lag returns the lag in records and in time.
func (g *Group) Lag(ctx context.Context) (core.GroupLag, error) {
	return send[core.GroupLag](ctx, g.client, call{method: http.MethodGet, path: g.path("lag")})
}

// Delete deletes the group, its offsets and its bookmarks.
func (g *Group) Delete(ctx context.Context) error {
	_, err := send[struct{}](ctx, g.client, call{method: http.MethodDelete, path: g.path()})
	return err
}

// Member returns a member of the group; members with the same name are one member. An empty name becomes a unique one.
func (g *Group) Member(name string) *Member {
	return &Member{group: g, name: valueOr(name, "member-"+randomKey()[:12])}
}

// Member is one member of a group, from its first fetch for as long as it keeps fetching. Use it from one goroutine.
type Member struct {
	group      *Group
	name       string
	token      string // of the last read, by which the service identifies this instance
	generation int64
	// OnGap is called when records that retention deleted are skipped. The default logs a warning.
	OnGap func(Gap)
}

// Name returns the name of the member.
func (m *Member) Name() string { return m.name }

// Batch has records of a member's shards.
type Batch struct {
	Records       []Record `json:"records"`
	Shards        []int    `json:"shards"`
	Generation    int64    `json:"generation"`
	Token         string   `json:"token"`
	BehindSeconds float64  `json:"behind_seconds"`
	Gaps          []Gap    `json:"gaps"`
}

// Fetch joins if necessary, and returns the next records of the member's shards, waiting for the first. Before a
// commit, it returns the same records again.
func (m *Member) Fetch(ctx context.Context, limit int, wait time.Duration) (*Batch, error) {
	query := url.Values{"member": {m.name}, "limit": {strconv.Itoa(limit)}}
	if m.token != "" {
		query.Set("token", m.token)
	}
	if wait > 0 {
		query.Set("wait_seconds", strconv.FormatFloat(wait.Seconds(), 'f', -1, 64))
	}
	batch, err := send[Batch](ctx, m.group.client, call{method: http.MethodGet, path: m.group.path("records"), query: query})
	if err == nil {
		m.token, m.generation = batch.Token, batch.Generation
	}
	return &batch, err
}

// Commit commits a batch. The error for shards that were reassigned is a *PartialError with the code stale_generation.
func (m *Member) Commit(ctx context.Context, batch *Batch) error {
	body := map[string]any{"token": batch.Token}
	committed, err := send[struct {
		Offsets []struct {
			Error *ItemError `json:"error"`
		} `json:"offsets"`
	}](ctx, m.group.client, call{method: http.MethodPost, path: m.group.path("commit"), body: body})
	if err != nil {
		return err
	}
	refused := make([]*ItemError, len(committed.Offsets))
	for at, offset := range committed.Offsets {
		refused[at] = offset.Error
	}
	return partial(refused)
}

// Heartbeat keeps the shards of a batch while it is processed, and returns when the next one is due.
func (m *Member) Heartbeat(ctx context.Context, batch *Batch) (time.Duration, error) {
	body := map[string]any{"generation": batch.Generation, "owned": batch.Shards}
	answer, err := send[struct {
		Seconds float64 `json:"heartbeat_seconds"`
	}](ctx, m.group.client, call{method: http.MethodPost, path: m.group.path("members", m.name, "heartbeat"), body: body})
	return inSeconds(answer.Seconds), err
}

// Leave leaves the group: the member's shards are reassigned immediately.
func (m *Member) Leave(ctx context.Context) error {
	query := url.Values{}
	if m.generation != 0 {
		query.Set("generation", strconv.FormatInt(m.generation, 10))
	}
	m.token, m.generation = "", 0
	_, err := send[struct{}](ctx, m.group.client, call{
		method: http.MethodDelete, path: m.group.path("members", m.name), query: query,
	})
	return unlessFenced(err)
}

const fetchMax = 1_000

// Work passes batches to the handler and commits each when it returns nil, until the context ends; then it leaves the
// group and returns nil. An error of the handler ends the work: the batch is delivered again. While the handler runs,
// heartbeats keep the shards; if they were reassigned nevertheless, the batch is not committed.
func (m *Member) Work(ctx context.Context, handler func(ctx context.Context, batch *Batch) error) error {
	err := m.workUntil(ctx, handler)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.group.client.timeout)
	defer cancel()
	return errors.Join(err, m.Leave(leaving))
}

func (m *Member) workUntil(ctx context.Context, handler func(context.Context, *Batch) error) error {
	for ctx.Err() == nil {
		batch, err := m.Fetch(ctx, fetchMax, readWait)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		m.group.client.warnOf(batch.Gaps, m.OnGap)
		if len(batch.Records) > 0 {
			if err := m.handle(ctx, batch, handler); err != nil {
				return err
			}
		}
		if len(batch.Records) > 0 || len(batch.Gaps) > 0 {
			if err := unlessFenced(m.Commit(context.WithoutCancel(ctx), batch)); err != nil {
				return err
			}
		}
	}
	return nil
}

// handle sends heartbeats while the handler runs.
func (m *Member) handle(ctx context.Context, batch *Batch, handler func(context.Context, *Batch) error) error {
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pause := time.Second
		for sleep(beating, pause) == nil {
			next, err := m.Heartbeat(beating, batch)
			if err == nil {
				pause = next
			} else if beating.Err() == nil {
				m.group.client.logger.Warn("heartbeat failed", "group", m.group.name, "member", m.name, "error", err)
			}
		}
	}()
	err := handler(ctx, batch)
	stop()
	<-ended
	return err
}

// unlessFenced drops the error that shards belong to another member now, which receives their records again.
func unlessFenced(err error) error {
	var refused *PartialError
	if errors.As(err, &refused) {
		for _, item := range refused.Errors {
			if item != nil && !isFenced(item.Code) {
				return err
			}
		}
		return nil
	}
	var failure *Error
	if errors.As(err, &failure) && isFenced(failure.Code) {
		return nil
	}
	return err
}

func isFenced(code string) bool { return code == "stale_generation" || code == "member_unknown" }
