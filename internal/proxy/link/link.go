// Package link is the interface of the protocols between the two proxies of a pair. A protocol carries frames, and knows nothing of what is in
// them. It may lose or repeat them: the proxies repeat what is lost, and recognise what is repeated.
package link

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/proxyconfig"
	"vignette.dev/vignette/internal/traffic/request"
)

// Sender is the near proxy's end.
type Sender interface {
	// Carry hands a frame over, and waits for the answer of the far proxy's Handler. It calls sent once the frame is handed over, with the
	// time before its first byte. It calls sent again for each repetition by the protocol. The error is a *request.Failure. ctx is that
	// of the request, over all attempts.
	Carry(ctx context.Context, frame []byte, sent func(at time.Time)) (answer []byte, err error)
	Close()
}

// Handler is the far proxy: it answers a frame. It is called from any goroutine. No answer means none is sent.
type Handler func(ctx context.Context, frame []byte) (answer []byte)

// Setup of either end.
type Setup struct {
	// Config has all defaults filled in.
	Config proxyconfig.Config
	// Warn logs a problem for people.
	Warn func(text string)
}

// Silence is how long a connection may have unacknowledged data before it counts as lost.
func (s Setup) Silence() time.Duration {
	return time.Duration(s.Config.Retry.SilenceSeconds * float64(time.Second))
}

// FrameLimit is the most bytes of a frame.
func (s Setup) FrameLimit() int { return frame.Limit(s.Config.Limits.BodyBytes) }

// Protocol is one protocol between the proxies.
type Protocol struct {
	// Dial returns the near proxy's end. It connects in the background.
	Dial func(Setup) (Sender, error)
	// Listen begins the far proxy's end, which ends with ctx. The error concerns the setup, such as a port in use.
	Listen func(ctx context.Context, setup Setup, handle Handler) error
}

// Failure returns an error of a connection as a *request.Failure.
func Failure(err error) error {
	var known *request.Failure
	var network net.Error
	var lookup *net.DNSError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, syscall.ECONNREFUSED):
		return &request.Failure{Reason: request.Refused, Detail: "nobody listens at the other end"}
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return &request.Failure{Reason: request.Unreachable, Detail: "there is no route to the other end"}
	case errors.As(err, &lookup):
		return &request.Failure{Reason: request.Unreachable, Detail: "the name " + lookup.Name + " has no address"}
	case errors.Is(err, context.Canceled):
		return &request.Failure{Reason: request.Cancelled, Detail: "the proxy ends"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT), errors.As(err, &network) && network.Timeout():
		return &request.Failure{Reason: request.Timeout, Detail: "no answer came in time"}
	}
	return &request.Failure{Reason: request.Reset, Detail: "the connection was lost"}
}
