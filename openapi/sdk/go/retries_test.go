package millstream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"millstream"
	"millstream/core"
)

var quick = millstream.Retries{
	Limit: time.Second, FirstContact: 300 * time.Millisecond, FirstPause: time.Millisecond, LongestPause: 5 * time.Millisecond,
}

// scripted returns a client of a service that answers its nth request with the nth step; the last step repeats.
func scripted(t *testing.T, steps ...http.HandlerFunc) (*millstream.Client, *atomic.Int32) {
	var count atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		steps[min(int(count.Add(1)), len(steps))-1](w, r)
	}))
	t.Cleanup(server.Close)
	return millstream.New(millstream.WithURL(server.URL), millstream.WithRetries(quick)), &count
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// silence breaks the connection without an answer.
func silence(w http.ResponseWriter, _ *http.Request) {
	connection, _, _ := w.(http.Hijacker).Hijack()
	_ = connection.Close()
}

const sent = `{"messages":[{"id":"m","offset":3,"duplicate":false}]}`

func TestPrimaryAcknowledgementIsRequestedByWhoWantsIt(t *testing.T) {
	var values []string
	client, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		values = append(values, r.Header.Get("Millstream-Acknowledge"))
		answer(200, sent)(w, r)
	})
	sooner := client.With(millstream.WithPrimaryAcknowledgement())

	for _, one := range []*millstream.Client{client, sooner, client} {
		_, err := one.Queue("orders").Send(context.Background(), "hello")
		check(t, err)
	}

	equal(t, values, []string{"", "primary", ""})
}

func TestSendIsRepeatedWithItsKey(t *testing.T) {
	var keys []string
	remember := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			next(w, r)
		}
	}
	client, _ := scripted(t, remember(silence), remember(answer(503, `{"code":"storage_busy","retryable":true}`)), remember(answer(200, sent)))

	message, err := client.Queue("orders").Send(context.Background(), "hello")

	if err != nil || message.Offset != 3 {
		t.Fatal(message, err)
	}
	if len(keys) < 3 || keys[0] == "" || keys[0] != keys[len(keys)-1] {
		t.Fatal("keys", keys)
	}
}

func TestUnsafeCallIsNotRepeatedWhenItsOutcomeIsUnknown(t *testing.T) {
	client, count := scripted(t, silence)

	_, _, err := client.Core().QueuesAPI.PurgeQueue(context.Background(), "orders").Execute()

	if !errors.Is(err, millstream.ErrOutcomeUnknown) || count.Load() != 1 {
		t.Fatal(err, count.Load())
	}
}

func TestRejectionAfterAnUnknownOutcomeIsUnknown(t *testing.T) {
	client, _ := scripted(t, answer(504, `{"code":"storage_timeout","retryable":true,"outcome":"unknown"}`), answer(409, `{"code":"x","detail":"no"}`))

	_, err := client.Queue("orders").Send(context.Background(), "hello")

	if !errors.Is(err, millstream.ErrOutcomeUnknown) || errors.Is(err, millstream.ErrConnectionFailed) {
		t.Fatal(err)
	}
}

func TestRepeatedDeleteOfNothingIsSuccess(t *testing.T) {
	client, _ := scripted(t, answer(504, ``), answer(404, `{"code":"queue_not_found"}`))

	if err := client.Queue("orders").Delete(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestCreateAfterALostResponseReturnsTheObject(t *testing.T) {
	current := `{"name":"billing","stream":"clicks","kind":"ordered","start":"earliest","start_time":null,` +
		`"session_timeout_seconds":30,"static_timeout_seconds":300,"revoke_timeout_seconds":60,"paused":false,` +
		`"version":1,"created_at":"2026-01-01T00:00:00Z","changed_at":"2026-01-01T00:00:00Z"}`
	exists := `{"code":"precondition_failed","current":` + current + `,"changes":[]}`
	client, _ := scripted(t, silence, answer(412, exists))

	stored, err := client.Group("billing").Create(context.Background(), core.GroupConfig{Stream: "clicks"})

	if err != nil || stored.Stream != "clicks" || stored.Created {
		t.Fatal(stored, err)
	}
}

func TestFollowingFromLatestIsPlacedBeforeItWaits(t *testing.T) {
	var queries []string
	remember := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			queries = append(queries, r.URL.RawQuery)
			next(w, r)
		}
	}
	record := `{"shard":0,"offset":1,"data":"x","arrival_time":"2026-01-01T00:00:00Z"}`
	client, _ := scripted(t,
		remember(answer(200, `{"records":[],"next_cursor":"c1","gaps":[]}`)),
		remember(answer(200, `{"records":[`+record+`],"next_cursor":"c2","gaps":[]}`)))

	for record, err := range client.Stream("clicks").Follow(context.Background(), millstream.Latest) {
		if err != nil || record.Text() != "x" {
			t.Fatal(record, err)
		}
		break
	}

	expected := []string{"from=latest&limit=1000", "cursor=c1&limit=1000&wait_seconds=20"}
	if !slices.Equal(queries, expected) {
		t.Fatal(queries)
	}
}

func TestServiceThatWasNeverReachedFailsSoon(t *testing.T) {
	client := millstream.New(millstream.WithURL("http://127.0.0.1:1"), millstream.WithRetries(quick))

	_, err := client.Queue("orders").Send(context.Background(), "hello")

	if !errors.Is(err, millstream.ErrNeverConnected) || !errors.Is(err, millstream.ErrConnectionFailed) {
		t.Fatal(err)
	}
}

func TestOtherServiceIsNotMillstream(t *testing.T) {
	client, _ := scripted(t, answer(200, `<html>`))

	_, err := client.Queue("orders").Send(context.Background(), "hello")

	if !errors.Is(err, millstream.ErrNotMillstream) {
		t.Fatal(err)
	}
}

func TestProblemIsATypedError(t *testing.T) {
	client, _ := scripted(t, answer(422, `{"code":"validation_failed","detail":"Wrong","request_id":"r1","errors":[{"pointer":"/body","detail":"no","code":"c"}]}`))

	_, err := client.Queue("orders").Send(context.Background(), "hello")

	var failure *millstream.Error
	if !errors.As(err, &failure) || !errors.Is(err, millstream.ErrBadRequest) {
		t.Fatal(err)
	}
	if failure.RequestID != "r1" || failure.Status != 422 || failure.Faults[0].Pointer != "/body" || failure.Retryable {
		t.Fatalf("%+v", failure)
	}
}
