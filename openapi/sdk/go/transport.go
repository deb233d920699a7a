package millstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"millstream/core"
)

const (
	userAgent      = "millstream-client-go/" + core.DocumentVersion
	idempotencyKey = "Idempotency-Key"
	receiveWait    = 20 * time.Second // the most that a queue's configuration may request
)

// retrier sends requests as often as their retries allow. Calls that take an idempotency key get one.
type retrier struct {
	client  *Client
	base    http.RoundTripper
	service *reachability
}

// RoundTrip returns a response whose body has arrived, but for streams of events.
func (r *retrier) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := readBody(request)
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	effect := effectOf(request, body)
	state := &attempts{
		retries: r.client.retries, service: r.service, startedAt: time.Now(),
		mayRepeat: effect.mayRepeat, isRead: request.Method == http.MethodGet,
	}
	for {
		response, failure := r.attempt(request, body, effect)
		if failure == nil {
			return response, nil
		}
		if context := request.Context(); context.Err() != nil {
			return nil, context.Err()
		}
		if state.mayHaveHappened && request.Method == http.MethodDelete && failure.Status == http.StatusNotFound {
			return &http.Response{StatusCode: 204, Status: "204 No Content", Body: http.NoBody, Request: request}, nil
		}
		pause, final := state.pauseAfter(failure)
		if final == failure && response != nil {
			return response, nil
		}
		if final != nil {
			return nil, final
		}
		if err := sleep(request.Context(), pause); err != nil {
			return nil, err
		}
	}
}

func readBody(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	defer request.Body.Close()
	return io.ReadAll(request.Body)
}

// attempt returns a failure, with the response that it was made of, if there is one.
func (r *retrier) attempt(request *http.Request, body []byte, effect effect) (*http.Response, *Error) {
	ctx, cancel := context.WithCancel(request.Context())
	timer := time.AfterFunc(r.client.timeout+effect.wait, cancel)
	sent := request.Clone(ctx)
	sent.Body = io.NopCloser(bytes.NewReader(body))
	sent.ContentLength = int64(len(body))
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.addHeaders(sent.Header)
	response, err := r.base.RoundTrip(sent)
	if err == nil && strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		timer.Stop()
		response.Body = &closing{response.Body, cancel}
		return response, nil
	}
	defer cancel()
	defer timer.Stop()
	if err == nil {
		err = buffer(response)
	}
	if err != nil {
		return nil, r.failureOf(err)
	}
	r.service.isEstablished.Store(true)
	return r.outcomeOf(response)
}

func (r *retrier) addHeaders(header http.Header) {
	header.Set("User-Agent", userAgent)
	if key := r.client.apiKey(); key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	if r.client.namespace != "" {
		header.Set("Millstream-Namespace", r.client.namespace)
	}
	if r.client.primary {
		header.Set("Millstream-Acknowledge", "primary")
	}
}

// closing ends the request of a stream when its body is closed.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *closing) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// buffer replaces the body of a response by its bytes.
func buffer(response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return err
}

func (r *retrier) outcomeOf(response *http.Response) (*http.Response, *Error) {
	if response.StatusCode < 300 {
		return response, nil
	}
	if isForeign(response) {
		return nil, notMillstream(response, r.client.url, nil)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, refusalOf(response, body)
}

// failureOf classifies an error: nothing was sent only if there was no connection yet.
func (r *retrier) failureOf(err error) *Error {
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) || strings.Contains(err.Error(), "unsupported protocol scheme") {
		detail := fmt.Sprintf("Cannot connect to %s: %s", r.client.url, err)
		return &Error{Detail: detail, kind: ErrConnectionFailed, cause: err}
	}
	if errors.As(err, &dial) && dial.Op == "dial" {
		detail := fmt.Sprintf("Cannot reach %s: %s", r.client.url, err)
		return &Error{Detail: detail, Retryable: true, kind: ErrConnectionFailed, cause: err}
	}
	r.service.isEstablished.Store(true)
	detail := fmt.Sprintf("No answer came from %s: %s", r.client.url, err)
	return &Error{Detail: detail, Retryable: true, OutcomeUnknown: true, cause: err}
}

// effect of a repeated request, and how long the service may wait before it responds.
type effect struct {
	mayRepeat bool
	wait      time.Duration
}

// effectOf sets an idempotency key if the request takes one and has none.
func effectOf(request *http.Request, body []byte) effect {
	seconds, _ := strconv.ParseFloat(request.URL.Query().Get("wait_seconds"), 64)
	repeat := repeatOf(request.Method, request.URL.EscapedPath())
	switch repeat.Kind {
	case "keyed":
		if request.Header.Get(idempotencyKey) == "" {
			request.Header.Set(idempotencyKey, randomKey())
		}
		return effect{true, 0}
	case "guarded":
		return guardedEffect(repeat, body)
	}
	return effect{repeat.Kind == "safe", inSeconds(seconds)}
}

func guardedEffect(repeat core.Repeat, body []byte) effect {
	fields := map[string]any{}
	_ = json.Unmarshal(body, &fields)
	result := effect{}
	for _, name := range repeat.Guards {
		value, ok := fields[name]
		result.mayRepeat = result.mayRepeat || (ok && value != nil && value != "")
	}
	if strings.HasSuffix(repeat.Path, "/receive") {
		result.wait = receiveWait
	}
	return result
}

func repeatOf(method, path string) core.Repeat {
	words := strings.Split(path[max(strings.Index(path, "/v1/"), 0):], "/")
	for _, repeat := range core.Repeats {
		if repeat.Method == method && fits(strings.Split(repeat.Path, "/"), words) {
			return repeat
		}
	}
	return core.Repeat{}
}

func fits(names, words []string) bool {
	if len(names) != len(words) {
		return false
	}
	for place, name := range names {
		if name != words[place] && !strings.HasPrefix(name, "{") {
			return false
		}
	}
	return true
}

func randomKey() string {
	key := make([]byte, 16)
	_, _ = rand.Read(key)
	return hex.EncodeToString(key)
}

func inSeconds(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
