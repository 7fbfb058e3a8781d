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
	// clockInterval between measurements; each is the best of clockExchanges consecutive exchanges.
	clockInterval   = 15 * time.Second
	clockExchanges  = 8
	exchangeTimeout = 5 * time.Second
	// stepThreshold is that of NTP (RFC 5905, STEPT): a larger offset would take minutes to slew, at 500 ppm.
	stepThreshold = 128 * time.Millisecond
	// adjOffsetSingleshot is ADJ_OFFSET_SINGLESHOT of adjtimex(2).
	adjOffsetSingleshot = 0x8001
)

// httpClient keeps a connection, so that an exchange is one request and one answer.
func httpClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:     (&net.Dialer{Timeout: exchangeTimeout, KeepAlive: clockInterval}).DialContext,
		IdleConnTimeout: 4 * clockInterval,
	}}
}

// clockSource is the part of runapi's client that a clock needs.
type clockSource interface {
	Clock(ctx context.Context) (runapi.ClockReading, error)
}

// adjuster sets the machine's clock.
type adjuster interface {
	step(by time.Duration) error
	slew(by time.Duration) error
}

// clockKeeper measures the machine's clock against the server's and corrects it.
type clockKeeper struct {
	server clockSource
	file   string
	log    *slog.Logger
	adjust adjuster
	// realtime is the machine's clock, Unix nanoseconds.
	realtime func() int64
	state    runapi.AgentClock
}

func newClockKeeper(server clockSource, file string, log *slog.Logger) *clockKeeper {
	return &clockKeeper{server: server, file: file, log: log, adjust: systemAdjuster{}, realtime: clock.Realtime}
}

// measurement is the machine's clock less the server's; the error is at most uncertainty.
type measurement struct {
	offset, uncertainty time.Duration
}

// measure uses the exchange with the shortest round trip, like NTP: half of it bounds the error.
func (k *clockKeeper) measure(ctx context.Context) (best measurement, err error) {
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

func (k *clockKeeper) exchange(ctx context.Context) (measurement, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	asked := k.realtime()
	reading, err := k.server.Clock(ctx)
	answered := k.realtime()
	if err != nil {
		return measurement{}, fmt.Errorf("the server's clock: %w", err)
	}
	roundTrip := max((answered-asked)-(reading.SentNanoseconds-reading.ReceivedNanoseconds), 0)
	// This order does not overflow even if the clocks differ by decades.
	offset := (asked-reading.ReceivedNanoseconds)/2 + (answered-reading.SentNanoseconds)/2
	return measurement{time.Duration(offset), time.Duration((roundTrip + 1) / 2)}, nil
}

// set the clock before any app starts; without the server no app could start anyway.
func (k *clockKeeper) set(ctx context.Context) error {
	for logged := false; ; logged = true {
		m, err := k.measure(ctx)
		if err == nil {
			if err := k.adjust.step(-m.offset); err != nil {
				return err
			}
			k.state.SetSeconds = -m.offset.Seconds()
			k.log.Info("clock set", "by", (-m.offset).String(), "within", m.uncertainty.String())
			return k.correct(ctx)
		}
		if !logged {
			k.log.Warn("the clock cannot be set yet", "error", err)
		}
		if !clock.Pause(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// run corrects the clock until ctx ends.
func (k *clockKeeper) run(ctx context.Context) {
	for clock.Pause(ctx, clockInterval) {
		if err := k.correct(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("clock", "error", err)
		}
	}
}

// correct measures once, writes the result, and corrects the clock.
func (k *clockKeeper) correct(ctx context.Context) error {
	m, err := k.measure(ctx)
	if err != nil {
		return err
	}
	k.record(m)
	text, err := json.Marshal(k.state)
	if err != nil {
		return err
	}
	if err := replaceFile(k.file, text, 0o644); err != nil {
		return err
	}
	if m.offset.Abs() > max(stepThreshold, m.uncertainty) { // within the uncertainty the clock may be right
		k.log.Warn("the clock is off by too much to slew and is stepped", "by", (-m.offset).String())
		return k.adjust.step(-m.offset)
	}
	return k.adjust.slew(-m.offset)
}

func (k *clockKeeper) record(m measurement) {
	k.state.OffsetSeconds, k.state.UncertaintySeconds = m.offset.Seconds(), m.uncertainty.Seconds()
	k.state.WorstOffsetSeconds = max(k.state.WorstOffsetSeconds, m.offset.Abs().Seconds())
	k.state.WorstUncertaintySeconds = max(k.state.WorstUncertaintySeconds, m.uncertainty.Seconds())
	k.state.Measurements++
	k.state.MeasuredNanoseconds = k.realtime() - m.offset.Nanoseconds()
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

// slew replaces the rest of an earlier one (adjtime(3)); the kernel slews at 500 ppm.
func (systemAdjuster) slew(by time.Duration) error {
	change := unix.Timex{Modes: adjOffsetSingleshot, Offset: by.Microseconds()}
	if _, err := unix.Adjtimex(&change); err != nil {
		return fmt.Errorf("slew the clock by %v: %w", by, err)
	}
	return nil
}
