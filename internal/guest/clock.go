package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/runapi"
)

const (
	// clockInterval between measurements, each the best of clockExchanges, one after the other.
	clockInterval  = 15 * time.Second
	clockExchanges = 8
	exchangeTime   = 5 * time.Second
	// stepThreshold is NTP's (RFC 5905, STEPT): what is more would take minutes to slew, at 500 ppm.
	stepThreshold = 128 * time.Millisecond
	// adjOffsetSingleshot is ADJ_OFFSET_SINGLESHOT of adjtimex(2).
	adjOffsetSingleshot = 0x8001
)

// httpClient keeps a connection, so that an exchange is one question and one answer.
func httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:     (&net.Dialer{Timeout: exchangeTime, KeepAlive: clockInterval}).DialContext,
		IdleConnTimeout: 4 * clockInterval,
	}}
}

// reader is what a clock needs of runapi's client.
type reader interface {
	Clock(ctx context.Context) (runapi.ClockReading, error)
}

// adjuster sets the machine's clock.
type adjuster interface {
	step(by time.Duration) error
	slew(by time.Duration) error
}

// clockKeeper measures the machine's clock against the server's and corrects it.
type clockKeeper struct {
	server reader
	file   string
	log    *slog.Logger
	adjust adjuster
	// realtime is the machine's clock, Unix nanoseconds.
	realtime func() int64
	known    runapi.AgentClock
}

func newClockKeeper(server reader, file string, log *slog.Logger) *clockKeeper {
	return &clockKeeper{server: server, file: file, log: log, adjust: systemAdjuster{}, realtime: clock.Realtime}
}

// measured is the machine's clock less the server's; what it really is differs by no more than uncertainty.
type measured struct {
	offset, uncertainty time.Duration
}

// measure takes the exchange with the shortest round trip, as NTP does: half of it bounds the error.
func (k *clockKeeper) measure(ctx context.Context) (best measured, err error) {
	for i := range clockExchanges {
		m, err := k.exchange(ctx)
		if err != nil {
			return best, err
		}
		if i == 0 || m.uncertainty < best.uncertainty {
			best = m
		}
	}
	return best, nil
}

func (k *clockKeeper) exchange(ctx context.Context) (measured, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	asked := k.realtime()
	reading, err := k.server.Clock(ctx)
	answered := k.realtime()
	if err != nil {
		return measured{}, fmt.Errorf("the server's clock: %w", err)
	}
	roundTrip := max((answered-asked)-(reading.SentNanoseconds-reading.ReceivedNanoseconds), 0)
	// In this order nothing overflows where the clocks are decades apart.
	offset := (asked-reading.ReceivedNanoseconds)/2 + (answered-reading.SentNanoseconds)/2
	return measured{time.Duration(offset), time.Duration((roundTrip + 1) / 2)}, nil
}

// set the clock before any app runs; without the server no app could run anyway.
func (k *clockKeeper) set(ctx context.Context) error {
	for told := false; ; told = true {
		m, err := k.measure(ctx)
		if err == nil {
			if err := k.adjust.step(-m.offset); err != nil {
				return err
			}
			k.known.SetSeconds = -m.offset.Seconds()
			k.log.Info("clock set", "by", (-m.offset).String(), "within", m.uncertainty.String())
			return k.look(ctx)
		}
		if !told {
			k.log.Warn("the clock cannot be set yet", "error", err)
		}
		if !pause(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// keep the clock until ctx ends.
func (k *clockKeeper) keep(ctx context.Context) {
	for pause(ctx, clockInterval) {
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("clock", "error", err)
		}
	}
}

// look once, write down what was found, and correct it.
func (k *clockKeeper) look(ctx context.Context) error {
	m, err := k.measure(ctx)
	if err != nil {
		return err
	}
	k.note(m)
	text, err := json.Marshal(k.known)
	if err != nil {
		return err
	}
	if err := replaceFile(k.file, text, 0o644); err != nil {
		return err
	}
	if m.offset.Abs() > stepThreshold {
		k.log.Warn("the clock was off by more than can be slewed and is stepped", "by", (-m.offset).String())
		return k.adjust.step(-m.offset)
	}
	return k.adjust.slew(-m.offset)
}

func (k *clockKeeper) note(m measured) {
	k.known.OffsetSeconds, k.known.UncertaintySeconds = m.offset.Seconds(), m.uncertainty.Seconds()
	k.known.WorstOffsetSeconds = max(k.known.WorstOffsetSeconds, m.offset.Abs().Seconds())
	k.known.WorstUncertaintySeconds = max(k.known.WorstUncertaintySeconds, m.uncertainty.Seconds())
	k.known.Measurements++
	k.known.MeasuredNanoseconds = k.realtime() - m.offset.Nanoseconds()
}

type systemAdjuster struct{}

func (systemAdjuster) step(by time.Duration) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	to := unix.NsecToTimespec(now.Nano() + by.Nanoseconds())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &to); err != nil {
		return fmt.Errorf("set the clock by %v: %w", by, err)
	}
	return nil
}

// slew replaces what is left of an earlier one (adjtime(3)); the kernel does it at 500 ppm.
func (systemAdjuster) slew(by time.Duration) error {
	change := unix.Timex{Modes: adjOffsetSingleshot, Offset: by.Microseconds()}
	if _, err := unix.Adjtimex(&change); err != nil {
		return fmt.Errorf("slew the clock by %v: %w", by, err)
	}
	return nil
}
