package millstream

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"millstream/core"
)

// DefaultURL is the service on this machine.
const DefaultURL = "http://127.0.0.1:8080"

// Client is a connection pool of one service. It is safe for concurrent use.
type Client struct {
	url       string
	namespace string
	apiKey    func() string
	primary   bool // its acknowledgement is enough
	http      *http.Client
	logger    *slog.Logger
	retries   Retries
	timeout   time.Duration
}

// Option sets an option of a client.
type Option func(*Client)

// WithURL sets the URL of the service. The default is MILLSTREAM_URL, then [DefaultURL].
func WithURL(url string) Option { return func(c *Client) { c.url = url } }

// WithAPIKey sets the key or token. The default is MILLSTREAM_API_KEY.
func WithAPIKey(key string) Option { return WithAPIKeyFunc(func() string { return key }) }

// WithAPIKeyFunc sets a function that returns the key or token. It is called before each attempt.
func WithAPIKeyFunc(key func() string) Option { return func(c *Client) { c.apiKey = key } }

// WithNamespace sets the namespace of all calls.
func WithNamespace(name string) Option { return func(c *Client) { c.namespace = name } }

// WithPrimaryAcknowledgement has writes acknowledged when they are on the primary's disk, without waiting for replicas:
// sooner, but lost with the primary. It changes nothing where stores are not replicated.
func WithPrimaryAcknowledgement() Option { return func(c *Client) { c.primary = true } }

// WithRetries sets the time limits of retries.
func WithRetries(retries Retries) Option { return func(c *Client) { c.retries = retries } }

// WithTimeout limits each attempt, beyond the wait that a call requests. The default is 30 seconds.
func WithTimeout(timeout time.Duration) Option { return func(c *Client) { c.timeout = timeout } }

// WithTransport sets the transport of single attempts, for a proxy or your own certificate authority.
func WithTransport(transport http.RoundTripper) Option {
	return func(c *Client) { c.http.Transport = transport }
}

// WithLogger sets where retries and gaps are logged. The default is [slog.Default].
func WithLogger(logger *slog.Logger) Option { return func(c *Client) { c.logger = logger } }

// New returns a client. It connects with its first call.
func New(options ...Option) *Client {
	c := &Client{
		url:     valueOr(os.Getenv("MILLSTREAM_URL"), DefaultURL),
		apiKey:  func() string { return os.Getenv("MILLSTREAM_API_KEY") },
		http:    &http.Client{Transport: pool()},
		logger:  slog.Default(),
		retries: DefaultRetries,
		timeout: 30 * time.Second,
	}
	for _, option := range options {
		option(c)
	}
	c.url = strings.TrimRight(c.url, "/")
	c.http.Transport = &retrier{client: c, base: c.http.Transport, service: &reachability{logger: c.logger}}
	return c
}

// With returns a client with other options, which shares the connections of this one unless it gets another transport.
func (c *Client) With(options ...Option) *Client {
	current := c.http.Transport.(*retrier)
	other, plain := *c, *c.http
	other.http, plain.Transport = &plain, current.base
	for _, option := range options {
		option(&other)
	}
	other.url = strings.TrimRight(other.url, "/")
	service := current.service
	if other.url != c.url {
		service = &reachability{logger: other.logger}
	}
	other.http.Transport = &retrier{client: &other, base: other.http.Transport, service: service}
	return &other
}

func pool() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 200
	transport.DisableCompression = true // costs more than a network nearby
	return transport
}

func valueOr(value, other string) string {
	if value == "" {
		return other
	}
	return value
}

// Queue returns a queue, whether it exists or not.
func (c *Client) Queue(name string) *Queue { return newQueue(c, name) }

// Stream returns a stream, whether it exists or not.
func (c *Client) Stream(name string) *Stream { return &Stream{client: c, name: name} }

// Group returns a consumer group, whether it exists or not.
func (c *Client) Group(name string) *Group { return &Group{client: c, name: name} }

// Core returns the generated client, which has every operation, with the same key and retries.
func (c *Client) Core() *core.APIClient {
	configuration := core.NewConfiguration()
	configuration.Servers = core.ServerConfigurations{{URL: c.url}}
	configuration.HTTPClient = c.http
	configuration.UserAgent = userAgent
	return core.NewAPIClient(configuration)
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// CloseIdleConnections closes idle connections of the transport below.
func (r *retrier) CloseIdleConnections() {
	if base, ok := r.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// sleep waits, and returns the context's error if it ends first.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
