package main

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

const group = "work"

// redisStream is a stream key; the client pipelines the commands of all callers.
type redisStream struct {
	target
	client rueidis.Client
}

func newRedisStream(to target) (broker, error) {
	options, err := rueidis.ParseURL(to.url)
	if err != nil {
		return nil, err
	}
	options.AlwaysPipelining, options.DisableCache = true, true
	client, err := rueidis.NewClient(options)
	return &redisStream{to, client}, err
}

func (s *redisStream) do(command rueidis.Completed) rueidis.RedisResult {
	return s.client.Do(context.Background(), command)
}

func (s *redisStream) create() error {
	return s.do(s.client.B().XgroupCreate().Key(s.name).Group(group).Id("0").Mkstream().Build()).Error()
}

func (s *redisStream) drop() error { return s.do(s.client.B().Del().Key(s.name).Build()).Error() }

func (s *redisStream) add() rueidis.Completed {
	return s.client.B().Xadd().Key(s.name).Id("*").FieldValue().
		FieldValue("d", rueidis.BinaryString(s.body)).Build()
}

func (s *redisStream) caller(operation string, nth int) (caller, error) {
	switch operation {
	case "send":
		return func() (int, error) { return 1, s.do(s.add()).Error() }, nil
	case "produce":
		return s.produce, nil
	case "work":
		name := strconv.Itoa(nth)
		return func() (int, error) { return s.work(name) }, nil
	}
	return s.reader(), nil
}

func (s *redisStream) produce() (int, error) {
	commands := make(rueidis.Commands, batch)
	for nth := range commands {
		commands[nth] = s.add()
	}
	for _, response := range s.client.DoMulti(context.Background(), commands...) {
		if err := response.Error(); err != nil {
			return 0, err
		}
	}
	return batch, nil
}

func (s *redisStream) work(consumer string) (int, error) {
	command := s.client.B().Xreadgroup().Group(group, consumer).Count(few).
		Streams().Key(s.name).Id(">").Build()
	streams, err := s.do(command).AsXRead()
	if err != nil {
		return 0, err
	}
	ids := make([]string, 0, few)
	for _, entry := range streams[s.name] {
		ids = append(ids, entry.ID)
	}
	return len(ids), s.do(s.client.B().Xack().Key(s.name).Group(group).Id(ids...).Build()).Error()
}

func (s *redisStream) reader() caller {
	from := "-"
	return func() (int, error) {
		command := s.client.B().Xrange().Key(s.name).Start(from).End("+").Count(batch).Build()
		entries, err := s.do(command).AsXRange()
		if err != nil {
			return 0, err
		}
		from = "-"
		if len(entries) == batch {
			from = "(" + entries[batch-1].ID
		}
		return len(entries), nil
	}
}
