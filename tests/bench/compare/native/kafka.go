package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaTopic has one partition; the producer is idempotent, and waits for all replicas, which is one.
type kafkaTopic struct {
	target
	// client of all callers: it batches what they send meanwhile.
	client *kgo.Client
}

func newKafkaTopic(to target) (broker, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(to.url), kgo.DefaultProduceTopic(to.name), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	)
	return &kafkaTopic{to, client}, err
}

func (t *kafkaTopic) create() error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = t.name, 1, 1
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(context.Background(), t.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Topics[0].ErrorCode)
}

func (t *kafkaTopic) drop() error {
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = &t.name
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TopicNames, request.Topics = []string{t.name}, append(request.Topics, topic)
	response, err := request.RequestWith(context.Background(), t.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Topics[0].ErrorCode)
}

func (t *kafkaTopic) caller(operation string, _ int) (caller, error) {
	switch operation {
	case "send":
		return t.producer(1), nil
	case "produce":
		return t.producer(batch), nil
	case "read":
		return t.reader()
	}
	return nil, unsupported(operation)
}

func (t *kafkaTopic) producer(count int) caller {
	return func() (int, error) {
		records := make([]*kgo.Record, count)
		for nth := range records {
			records[nth] = &kgo.Record{Value: t.body}
		}
		return count, t.client.ProduceSync(context.Background(), records...).FirstErr()
	}
}

func (t *kafkaTopic) reader() (caller, error) {
	var client *kgo.Client
	left := t.limit / batch
	restart := func() (err error) {
		if client != nil {
			client.Close()
		}
		from := map[string]map[int32]kgo.Offset{t.name: {0: kgo.NewOffset().AtStart()}}
		client, err = kgo.NewClient(kgo.SeedBrokers(t.url), kgo.ConsumePartitions(from))
		return err
	}
	return func() (int, error) {
		if left--; left < 0 {
			if err := restart(); err != nil {
				return 0, err
			}
			left = t.limit/batch - 1
		}
		for read := 0; read < batch; {
			some := client.PollRecords(context.Background(), batch-read)
			if err := some.Err(); err != nil {
				return read, err
			}
			read += some.NumRecords()
		}
		return batch, nil
	}, restart()
}
