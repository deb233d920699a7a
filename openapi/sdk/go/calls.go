package millstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// call is one request with a JSON body.
type call struct {
	method string
	path   []string
	query  url.Values
	header http.Header
	body   any
}

// send returns the decoded response. Its error is an *Error, or that of the context.
func send[T any](ctx context.Context, c *Client, call call) (T, error) {
	var decoded T
	request, err := c.request(ctx, call)
	if err != nil {
		return decoded, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return decoded, withoutURL(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode >= 300 {
		return decoded, refusalOf(response, body)
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &decoded); err != nil {
			return decoded, notMillstream(response, c.url, err)
		}
	}
	return decoded, nil
}

func (c *Client) request(ctx context.Context, call call) (*http.Request, error) {
	words := make([]string, len(call.path))
	for place, word := range call.path {
		words[place] = url.PathEscape(word)
	}
	var body io.Reader
	if call.body != nil {
		encoded, err := json.Marshal(call.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	address := c.url + "/v1/" + strings.Join(words, "/")
	if len(call.query) > 0 {
		address += "?" + call.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, call.method, address, body)
	if err != nil {
		return nil, &Error{Detail: err.Error(), kind: ErrConnectionFailed, cause: err}
	}
	request.Header = call.header.Clone()
	if request.Header == nil {
		request.Header = http.Header{}
	}
	if call.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// create sends a PUT that only creates; it returns an existing object if its settings are the same: an attempt
// without a response may have created it.
func create[T any](ctx context.Context, c *Client, config any, path ...string) (T, error) {
	header := http.Header{"If-None-Match": {"*"}}
	stored, err := send[T](ctx, c, call{http.MethodPut, path, nil, header, config})
	var failure *Error
	if errors.As(err, &failure) && failure.OutcomeUnknown {
		_ = errors.As(failure.cause, &failure)
	}
	if failure == nil || failure.kind != ErrAlreadyExists || len(failure.Changes) > 0 {
		return stored, err
	}
	existing := failure.current
	existing["created"], existing["dry_run"], existing["changes"] = false, false, []any{}
	encoded, err := json.Marshal(existing)
	if err != nil {
		return stored, err
	}
	return stored, json.Unmarshal(encoded, &stored)
}
