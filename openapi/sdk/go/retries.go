package millstream

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Retries are the time limits and the speed of retries.
type Retries struct {
	// Limit counts from the first failure; 0: one attempt.
	Limit time.Duration
	// FirstContact limits a client that has never reached the service.
	FirstContact time.Duration
	// FirstPause and LongestPause bound the exponential backoff, which has full jitter.
	FirstPause, LongestPause time.Duration
}

// DefaultRetries retries for a minute, and for five seconds if the service was never reached.
var DefaultRetries = Retries{
	Limit:        time.Minute,
	FirstContact: 5 * time.Second,
	FirstPause:   100 * time.Millisecond,
	LongestPause: 5 * time.Second,
}

const unreachedPause = 500 * time.Millisecond

// attempts decides on the retries of one logical call.
//
//	rejected, retryable                   retry, after Retry-After or a delay
//	never sent                            retry
//	no response, or outcome unknown       retry only if a repeat has no further effect
//	anything else                         fail
type attempts struct {
	retries         Retries
	service         *reachability
	mayRepeat       bool
	isRead          bool
	startedAt       time.Time
	failedAt        time.Time
	failures        int
	mayHaveHappened bool
}

// pauseAfter returns the time until the next attempt, or the error if there is none.
func (a *attempts) pauseAfter(failure *Error) (time.Duration, *Error) {
	now := time.Now()
	if a.failures == 0 {
		a.failedAt = now
	}
	a.mayHaveHappened = a.mayHaveHappened || failure.OutcomeUnknown
	if !failure.Retryable || (failure.OutcomeUnknown && !a.mayRepeat) {
		return 0, a.last(failure)
	}
	limit, since, longest := a.retries.Limit, a.failedAt, a.retries.LongestPause
	if a.service.isUnreached(failure) {
		limit, since, longest = min(limit, a.retries.FirstContact), a.startedAt, min(longest, unreachedPause)
	}
	backoff := min(longest, a.retries.FirstPause<<min(a.failures, 16))
	pause := failure.retryAfter + time.Duration(rand.Float64()*float64(backoff))
	a.failures++
	if now.Add(pause).After(since.Add(limit)) {
		return 0, a.last(failure)
	}
	a.service.warn(failure, a.failures, limit)
	return pause, nil
}

// last returns the final error: a rejection now does not show what an earlier attempt did.
func (a *attempts) last(failure *Error) *Error {
	if a.mayHaveHappened && !failure.OutcomeUnknown && !a.isRead {
		return &Error{
			Detail:         "An earlier attempt may have happened; the last one: " + failure.Error(),
			Retryable:      true,
			OutcomeUnknown: true,
			cause:          failure,
		}
	}
	return a.service.final(failure)
}

const (
	warnAfter = 2
	warnEvery = time.Minute
)

// reachability is the state of the connection to a service, shared by all calls of a client.
type reachability struct {
	logger        *slog.Logger
	isEstablished atomic.Bool
	mutex         sync.Mutex
	warnedAt      time.Time
}

func (r *reachability) isUnreached(failure *Error) bool {
	return !r.isEstablished.Load() && errors.Is(failure, ErrConnectionFailed)
}

func (r *reachability) final(failure *Error) *Error {
	if !r.isUnreached(failure) || !failure.Retryable {
		return failure
	}
	detail := strings.TrimRight(failure.Detail, ".") + ". Is the service running? Start one with `millstream up`."
	return &Error{Detail: detail, kind: ErrNeverConnected, cause: failure}
}

// warn logs a failure that is retried, at most once a minute.
func (r *reachability) warn(failure *Error, failures int, limit time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if failures >= warnAfter && time.Since(r.warnedAt) >= warnEvery {
		r.warnedAt = time.Now()
		r.logger.Warn(fmt.Sprintf("%s; retrying for up to %s", strings.TrimRight(failure.Error(), "."), limit))
	}
}
