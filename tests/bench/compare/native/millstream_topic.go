package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// millstreamTopic has ten routes to queues; all calls are HTTP in JSON, over connections that are used again.
type millstreamTopic struct {
	target
	client http.Client
}

type values = map[string]any

func newMillstreamTopic(to target) (broker, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: to.callers + queues}
	return &millstreamTopic{to, http.Client{Transport: transport, Timeout: time.Minute}}, nil
}

func (t *millstreamTopic) call(method, path string, body []byte, answer any) error {
	request, err := http.NewRequest(method, t.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := t.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s", method, path, data)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(data, answer)
}

func (t *millstreamTopic) put(path string, body values) error {
	return t.call("PUT", path, encoded(body), nil)
}

func encoded(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func (t *millstreamTopic) path() string { return "/v1/topics/" + t.name }

func (t *millstreamTopic) queuePath(nth int) string { return "/v1/queues/" + t.queue(nth) }

// create returns when a message has reached all queues: a new topic is routed within a second.
func (t *millstreamTopic) create() error {
	if err := t.put(t.path(), values{}); err != nil {
		return err
	}
	for nth := range queues {
		if err := t.put(t.queuePath(nth), values{}); err != nil {
			return err
		}
		route := values{"match": values{"subject": pattern}, "target": values{"queue": t.queue(nth)}}
		if err := t.put(fmt.Sprintf("%s/routes/r%d", t.path(), nth), route); err != nil {
			return err
		}
	}
	if _, err := t.publisher(1)(); err != nil {
		return err
	}
	for nth := range queues {
		call, err := t.consumer(nth)
		if err != nil {
			return err
		}
		if err := drain(call, 1); err != nil {
			return err
		}
	}
	return nil
}

func (t *millstreamTopic) drop() error {
	if err := t.call("DELETE", t.path(), nil, nil); err != nil {
		return err
	}
	for nth := range queues {
		if err := t.call("DELETE", t.queuePath(nth), nil, nil); err != nil {
			return err
		}
	}
	return nil
}

func (t *millstreamTopic) caller(operation string, _ int) (caller, error) {
	switch operation {
	case "send":
		return t.publisher(1), nil
	case "produce":
		return t.publisher(batch), nil
	}
	return nil, unsupported(operation)
}

func (t *millstreamTopic) publisher(count int) caller {
	message := values{"body": string(t.body), "subject": subject}
	body := encoded(message)
	if count > 1 {
		body = encoded(values{"messages": slices.Repeat([]values{message}, count)})
	}
	return func() (int, error) { return count, t.call("POST", t.path()+"/messages", body, nil) }
}

type delivery struct {
	ReceiptHandle string `json:"receipt_handle"`
}

type settlement struct {
	delivery
	Action string `json:"action"`
}

func (t *millstreamTopic) consumer(queue int) (caller, error) {
	path, receive := t.queuePath(queue), encoded(values{"messages_max": many, "wait_seconds": 5})
	return func() (int, error) {
		var received struct{ Messages []delivery }
		if err := t.call("POST", path+"/receive", receive, &received); err != nil {
			return 0, err
		}
		if len(received.Messages) == 0 {
			return 0, nil
		}
		settlements := make([]settlement, len(received.Messages))
		for nth, one := range received.Messages {
			settlements[nth] = settlement{one, "ack"}
		}
		return len(settlements), t.call("POST", path+"/settle", encoded(values{"settlements": settlements}), nil)
	}, nil
}
