package millstream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millstream"
	"millstream/core"
)

// service returns a client of the service in MILLSTREAM_URL, and a name for objects of the test.
func service(t *testing.T) (context.Context, *millstream.Client, string) {
	if os.Getenv("MILLSTREAM_URL") == "" {
		t.Skip("MILLSTREAM_URL is not set")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx, millstream.New(), fmt.Sprintf("go-%d", time.Now().UnixNano())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, actual, expected any) {
	t.Helper()
	if !reflect.DeepEqual(actual, expected) {
		t.Fatalf("%#v, not %#v", actual, expected)
	}
}

func TestQueueIsCreatedOnce(t *testing.T) {
	ctx, client, name := service(t)
	queue := client.Queue(name)
	config := core.QueueConfig{}
	config.SetAttemptsMax(3)

	first, err := queue.Create(ctx, config)
	check(t, err)
	second, err := queue.Create(ctx, config)
	check(t, err)
	equal(t, []bool{first.Created, second.Created}, []bool{true, false})

	config.SetAttemptsMax(4)
	_, err = queue.Create(ctx, config)
	var failure *millstream.Error
	if !errors.As(err, &failure) || !errors.Is(err, millstream.ErrAlreadyExists) {
		t.Fatal(err)
	}
	equal(t, failure.Changes[0].Pointer, "/attempts_max")
	applied, err := queue.Apply(ctx, config)
	check(t, err)
	equal(t, len(applied.Changes), 1)
	check(t, queue.Delete(ctx))
	_, err = queue.Stats(ctx)
	equal(t, errors.Is(err, millstream.ErrNotFound), true)
}

func TestQueueSendsAndReceivesAnyBody(t *testing.T) {
	ctx, client, name := service(t)
	queue := client.Queue(name)
	_, err := queue.Create(ctx, core.QueueConfig{})
	check(t, err)

	_, err = queue.Send(ctx, map[string]int{"order": 7})
	check(t, err)
	_, err = queue.SendMany(ctx,
		millstream.NewMessage{Body: "text", Headers: map[string]string{"source": "web"}},
		millstream.NewMessage{Body: []byte{0, 255}},
		millstream.NewMessage{Body: `"quoted"`, ContentType: "application/json"},
	)
	check(t, err)
	keyed := millstream.NewMessage{Body: "once", IdempotencyKey: name}
	first, err := queue.Send(ctx, keyed)
	check(t, err)
	again, err := queue.Send(ctx, keyed)
	check(t, err)
	equal(t, again.ID, first.ID)

	messages, err := queue.Receive(ctx, millstream.Receive{Max: 10})
	check(t, err)
	bodies := []string{}
	for _, message := range messages {
		bodies = append(bodies, message.Text())
	}
	slices.Sort(bodies)
	equal(t, bodies, []string{"\x00\xff", `"quoted"`, "once", "text", `{"order":7}`})

	var group sync.WaitGroup
	for _, message := range messages {
		group.Add(1)
		go func() {
			defer group.Done()
			if message.Extend(ctx, time.Minute) != nil || message.Ack(ctx) != nil {
				t.Error("not settled", message.ID)
			}
		}()
	}
	group.Wait()
	var refused *millstream.ItemError
	if err := messages[0].Nack(ctx, "late"); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	stats, err := queue.Stats(ctx)
	check(t, err)
	equal(t, stats.Ready+stats.InFlight, int64(0))
}

func TestWorkerAcksRetriesAndRejects(t *testing.T) {
	ctx, client, name := service(t)
	queue := client.Queue(name)
	config := core.QueueConfig{}
	config.SetAttemptsMax(2)
	_, err := queue.Create(ctx, config)
	check(t, err)
	for _, body := range []string{"fine", "retried", "rejected", "failing", "panicking", "slow"} {
		_, err := queue.Send(ctx, body)
		check(t, err)
	}
	var handled sync.Map
	var slowCount atomic.Int32
	handler := func(ctx context.Context, message *millstream.Message) error {
		count, _ := handled.LoadOrStore(message.Text(), new(atomic.Int32))
		attempt := count.(*atomic.Int32).Add(1)
		switch message.Text() {
		case "retried":
			if attempt == 1 {
				return millstream.Retry(0, errors.New("not yet"))
			}
		case "rejected":
			return millstream.Reject("a negative total")
		case "failing":
			return millstream.Retry(0, errors.New("always"))
		case "panicking":
			if attempt == 1 {
				return millstream.Retry(0, nil)
			}
			panic("index out of range")
		case "slow": // longer than its lease
			slowCount.Add(1)
			time.Sleep(2500 * time.Millisecond)
		}
		return nil
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error)
	go func() {
		ended <- queue.Work(working, handler, millstream.Concurrency(8), millstream.Lease(time.Second))
	}()

	for {
		stats, err := queue.Stats(ctx)
		check(t, err)
		if stats.Ready+stats.InFlight+stats.Delayed == 0 && stats.DeadLettered == 3 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	check(t, <-ended)
	reasons := []string{}
	for letter, err := range queue.DeadLetters(ctx) {
		check(t, err)
		reasons = append(reasons, fmt.Sprint(letter.Body, ": ", reasonOf(letter)))
	}
	slices.Sort(reasons)
	equal(t, reasons, []string{"failing: always", "panicking: index out of range", "rejected: a negative total"})
	equal(t, slowCount.Load(), int32(1))
}

func reasonOf(letter core.DeadLetterOut) string {
	if reason := letter.GetLastFailureReason(); reason != "" {
		return reason
	}
	return letter.Reason
}

func TestWorkerFinishesItsMessagesWhenStopped(t *testing.T) {
	ctx, client, name := service(t)
	queue := client.Queue(name)
	_, err := queue.Create(ctx, core.QueueConfig{})
	check(t, err)
	_, err = queue.SendMany(ctx, millstream.NewMessage{Body: "quick"}, millstream.NewMessage{Body: "endless"})
	check(t, err)
	working, stop := context.WithCancel(ctx)
	defer stop()
	var begun atomic.Int32
	handler := func(ctx context.Context, message *millstream.Message) error {
		if begun.Add(1) == 2 {
			stop()
		}
		if message.Text() == "endless" {
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(100 * time.Millisecond)
		return nil
	}

	check(t, queue.Work(working, handler, millstream.Concurrency(2), millstream.Grace(300*time.Millisecond)))

	stats, err := queue.Stats(ctx)
	check(t, err)
	equal(t, []int64{stats.Ready, stats.InFlight}, []int64{1, 0})
}

func TestWorkerEndsWhenItsQueueIsMissing(t *testing.T) {
	ctx, client, name := service(t)

	err := client.Queue(name).Work(ctx, func(context.Context, *millstream.Message) error { return nil })

	equal(t, errors.Is(err, millstream.ErrNotFound), true)
}

func TestStreamIsReadAndFollowed(t *testing.T) {
	ctx, client, name := service(t)
	stream := client.Stream(name)
	_, err := stream.Create(ctx, core.StreamConfig{Shards: core.PtrInt64(2)})
	check(t, err)
	moment := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)

	_, err = stream.Append(ctx, millstream.NewRecord{Data: map[string]string{"page": "/"}, Key: "ann", EventTime: moment})
	check(t, err)
	_, err = stream.AppendMany(ctx, millstream.NewRecord{Data: "two", Key: "ann"}, millstream.NewRecord{Data: []byte{255}, Key: "ann"})
	check(t, err)
	data := []string{}
	for record, err := range stream.Read(ctx, millstream.Earliest) {
		check(t, err)
		data = append(data, record.Text())
		equal(t, record.Key, "ann")
	}
	equal(t, data, []string{`{"page":"/"}`, "two", "\xff"})

	go func() {
		time.Sleep(200 * time.Millisecond)
		_, _ = stream.Append(ctx, "later")
	}()
	for record, err := range stream.Follow(ctx, millstream.Latest) {
		check(t, err)
		equal(t, record.Text(), "later")
		break
	}
}

func TestGroupMembersShareAStream(t *testing.T) {
	ctx, client, name := service(t)
	stream, group := client.Stream(name), client.Group(name)
	_, err := stream.Create(ctx, core.StreamConfig{Shards: core.PtrInt64(2)})
	check(t, err)
	stored, err := group.Create(ctx, core.GroupConfig{Stream: name, SessionTimeoutSeconds: core.PtrFloat32(2)})
	check(t, err)
	equal(t, stored.Created, true)
	for count := range 20 {
		_, err := stream.Append(ctx, millstream.NewRecord{Data: fmt.Sprint(count), Key: fmt.Sprint(count)})
		check(t, err)
	}

	var count atomic.Int32
	working, stop := context.WithCancel(ctx)
	defer stop()
	var members sync.WaitGroup
	for range 2 {
		members.Add(1)
		go func() {
			defer members.Done()
			err := group.Member("").Work(working, func(ctx context.Context, batch *millstream.Batch) error {
				time.Sleep(3 * time.Second) // longer than the session timeout
				if count.Add(int32(len(batch.Records))) >= 20 {
					stop()
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	members.Wait()

	lag, err := group.Lag(ctx)
	check(t, err)
	equal(t, lag.Records, int64(0))
	details, _, err := client.Core().GroupsAPI.GetConsumerGroup(ctx, name).Execute()
	check(t, err)
	equal(t, len(details.Members), 0)
}

func TestBatchIsDeliveredAgainWhenItsHandlerFails(t *testing.T) {
	ctx, client, name := service(t)
	stream, group := client.Stream(name), client.Group(name)
	_, err := stream.Create(ctx, core.StreamConfig{})
	check(t, err)
	_, err = group.Create(ctx, core.GroupConfig{Stream: name})
	check(t, err)
	_, err = stream.Append(ctx, "again")
	check(t, err)
	broken := errors.New("broken")

	err = group.Member("a").Work(ctx, func(context.Context, *millstream.Batch) error { return broken })

	equal(t, errors.Is(err, broken), true)
	member := group.Member("b")
	batch, err := member.Fetch(ctx, 10, time.Second)
	check(t, err)
	equal(t, batch.Records[0].Text(), "again")
	check(t, member.Commit(ctx, batch))
	check(t, member.Leave(ctx))
}
