package millstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kinds of errors, for errors.Is.
var (
	ErrConnectionFailed   = errors.New("the service is unreachable: nothing happened")
	ErrNeverConnected     = errors.New("the service was never reached by this client")
	ErrOutcomeUnknown     = errors.New("the call may have taken effect")
	ErrNotMillstream      = errors.New("something else answers at the URL")
	ErrBadRequest         = errors.New("the request is invalid")
	ErrUnauthenticated    = errors.New("the credential is missing or invalid")
	ErrForbidden          = errors.New("the credential does not have the permission")
	ErrNotFound           = errors.New("the resource does not exist")
	ErrConflict           = errors.New("the state of the resource does not allow the call")
	ErrAlreadyExists      = errors.New("the object exists with other settings")
	ErrGone               = errors.New("the offset has expired or does not exist yet")
	ErrPreconditionFailed = errors.New("a precondition does not hold")
	ErrLimited            = errors.New("a limit is exceeded")
	ErrServerFailed       = errors.New("the service failed")
	ErrUnavailable        = errors.New("the service or one of its stores is unavailable")
)

var kinds = map[int]error{
	400: ErrBadRequest, 405: ErrBadRequest, 413: ErrBadRequest, 415: ErrBadRequest, 422: ErrBadRequest,
	401: ErrUnauthenticated, 403: ErrForbidden, 404: ErrNotFound, 409: ErrConflict,
	410: ErrGone, 416: ErrGone, 412: ErrPreconditionFailed, 429: ErrLimited, 503: ErrUnavailable,
}

// Error is the failure of a call: get it with errors.As, or compare its kind with errors.Is.
type Error struct {
	// Status is the HTTP status; 0 if the service did not respond.
	Status int `json:"status"`
	// Code is the stable error code; empty if the service did not respond.
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
	// Retryable: the same call may succeed later.
	Retryable bool `json:"retryable"`
	// OutcomeUnknown: the call may have taken effect.
	OutcomeUnknown bool `json:"-"`
	// Faults of the input.
	Faults []Fault `json:"errors"`
	// Changes are the settings that differ, with [ErrAlreadyExists].
	Changes []Change `json:"changes"`

	current    map[string]any
	kind       error
	cause      error
	retryAfter time.Duration
}

// Fault of the input: its location (a JSON Pointer), a description, and its code.
type Fault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
	Code    string `json:"code"`
}

// Change is a setting that differs: its JSON Pointer, its current value, and the requested one.
type Change struct {
	Pointer string `json:"pointer"`
	Before  any    `json:"before"`
	After   any    `json:"after"`
}

func (e *Error) Error() string {
	places := make([]string, 0, len(e.Faults)+len(e.Changes))
	for _, fault := range e.Faults {
		places = append(places, fault.Pointer+": "+fault.Detail)
	}
	for _, change := range e.Changes {
		places = append(places, fmt.Sprintf("%s is %v, not %v", change.Pointer, change.Before, change.After))
	}
	text := e.Detail
	if len(places) > 0 {
		text += " [" + strings.Join(places, "; ") + "]"
	}
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	return text
}

// Is compares the kind. A 503 is ErrServerFailed, too, and ErrNeverConnected is ErrConnectionFailed.
func (e *Error) Is(kind error) bool {
	switch kind {
	case ErrOutcomeUnknown:
		return e.OutcomeUnknown
	case ErrServerFailed:
		return e.Status >= 500
	case ErrConnectionFailed:
		return e.kind == ErrConnectionFailed || e.kind == ErrNeverConnected
	case ErrPreconditionFailed, ErrConflict:
		return e.kind == kind || e.kind == ErrAlreadyExists
	}
	return e.kind == kind
}

func (e *Error) Unwrap() error { return e.cause }

// refusalOf returns the error for a response outside 2xx, which a proxy may have made.
func refusalOf(response *http.Response, body []byte) *Error {
	failure := &Error{}
	var members struct {
		Outcome string         `json:"outcome"`
		Current map[string]any `json:"current"`
	}
	if json.Unmarshal(body, failure) != nil || failure.Code == "" {
		failure = fromElsewhere(response.StatusCode)
	} else if json.Unmarshal(body, &members) == nil {
		failure.OutcomeUnknown = members.Outcome == "unknown"
		failure.current = members.Current
	}
	failure.Status = response.StatusCode
	failure.kind = kinds[failure.Status]
	if failure.Status == http.StatusPreconditionFailed && failure.current != nil {
		failure.kind, failure.Code = ErrAlreadyExists, "already_exists"
	}
	if seconds, err := strconv.ParseFloat(response.Header.Get("Retry-After"), 64); err == nil && seconds > 0 {
		failure.retryAfter = inSeconds(seconds)
	}
	return failure
}

func fromElsewhere(status int) *Error {
	isGateway := status == 502 || status == 503 || status == 504
	return &Error{
		Code:           fmt.Sprintf("http_%d", status),
		Detail:         fmt.Sprintf("The answer was %d.", status),
		Retryable:      isGateway || status == http.StatusTooManyRequests,
		OutcomeUnknown: isGateway,
	}
}

// isForeign reports whether an error is a page of another service, not of a proxy.
func isForeign(response *http.Response) bool {
	status := response.StatusCode
	return strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") &&
		(status == 403 || status == 404 || status == 405)
}

func notMillstream(response *http.Response, url string, cause error) *Error {
	kind := valueOr(response.Header.Get("Content-Type"), "no content type")
	return &Error{
		Status: response.StatusCode,
		Detail: fmt.Sprintf("%s answers, but it is not Millstream (HTTP %d, %s)", url, response.StatusCode, kind),
		kind:   ErrNotMillstream,
		cause:  cause,
	}
}

// ItemError is the rejection of one item of a batch.
type ItemError struct {
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
}

func (e *ItemError) Error() string { return fmt.Sprintf("%s (%s)", e.Detail, e.Code) }

// PartialError says that some items of a batch were rejected. Errors has one entry per item, nil for an accepted one.
type PartialError struct{ Errors []*ItemError }

func (e *PartialError) Error() string {
	first := e.first()
	return fmt.Sprintf("%d of %d items were rejected; the first: %s", e.count(), len(e.Errors), first)
}

// Unwrap returns the first rejection.
func (e *PartialError) Unwrap() error { return e.first() }

func (e *PartialError) first() *ItemError {
	for _, item := range e.Errors {
		if item != nil {
			return item
		}
	}
	return nil
}

func (e *PartialError) count() int {
	count := 0
	for _, item := range e.Errors {
		if item != nil {
			count++
		}
	}
	return count
}

// partial returns an error if an item was rejected.
func partial(items []*ItemError) error {
	refused := &PartialError{items}
	if refused.first() == nil {
		return nil
	}
	return refused
}
