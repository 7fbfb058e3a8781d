// Package appinstance is what the programs that an agent starts as instances of apps have in common: how they read their
// configuration, know their planned start, and are told to be quiet.
package appinstance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/wording"
)

// EnvStart names the environment variable with the start that the agent planned, in nanoseconds since the Unix epoch.
const EnvStart = "VIGNETTE_START_NS"

// EnvStop names the environment variable with the stop that the agent plans after that start, as EnvStart; none for a start without one.
const EnvStop = "VIGNETTE_STOP_NS"

// EnvT0 names the environment variable with T0 in nanoseconds since the Unix epoch.
const EnvT0 = "VIGNETTE_T0_NS"

// EnvMovement names the environment variable with the path of the node's movement (package position). Nodes without a position
// do not have it.
const EnvMovement = "VIGNETTE_MOVEMENT"

// EnvQuiet names the environment variable of a process that is to be quiet from its start; its value is QuietFromStart.
const (
	EnvQuiet       = "VIGNETTE_QUIET"
	QuietFromStart = "1"
)

// Start is the planned start, from which all of an instance's times count, not from when the program woke up; now where there is none.
func Start() (time.Time, error) {
	at, err := timeOf(EnvStart)
	if err == nil && at.IsZero() {
		at = time.Now().Round(0)
	}
	return at, err
}

// Stop is when the agent plans to stop the instance, zero for never. Sleep lets nothing be sent from then on.
func Stop() (time.Time, error) { return timeOf(EnvStop) }

// Sleep returns clock.SleepUntil for what an instance sends. What is due at the planned stop or later never is: at that moment
// chance would decide whether the program or the agent's signal is first.
func Sleep() (func(ctx context.Context, until time.Time) error, error) {
	stop, err := Stop()
	return func(ctx context.Context, until time.Time) error {
		if !stop.IsZero() && !until.Before(stop) {
			<-ctx.Done()
			return ctx.Err()
		}
		return clock.SleepUntil(ctx, until)
	}, err
}

// T0 of the run; zero outside of one.
func T0() (time.Time, error) { return timeOf(EnvT0) }

// timeOf an environment variable; zero if it is empty.
func timeOf(variable string) (time.Time, error) {
	text := os.Getenv(variable)
	if text == "" {
		return time.Time{}, nil
	}
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ns <= 0 {
		return time.Time{}, fmt.Errorf("environment variable %s is %q: want nanoseconds since the Unix epoch", variable, text)
	}
	return time.Unix(0, ns), nil
}

// QuietOn gives a channel that is closed by the first signal of a kind, or is closed already if EnvQuiet says so.
func QuietOn(s os.Signal) <-chan struct{} {
	quiet, signals := make(chan struct{}), make(chan os.Signal, 1)
	signal.Notify(signals, s)
	if os.Getenv(EnvQuiet) == QuietFromStart {
		close(quiet)
		return quiet
	}
	go func() {
		<-signals
		close(quiet)
	}()
	return quiet
}

// UntilQuiet gives a context that ends with ctx or when quiet is closed. If quiet is closed already, it has ended on return.
func UntilQuiet(ctx context.Context, quiet <-chan struct{}) (context.Context, context.CancelFunc) {
	sending, stop := context.WithCancel(ctx)
	select {
	case <-quiet:
		stop()
	default:
		go func() {
			select {
			case <-quiet:
				stop()
			case <-sending.Done():
			}
		}()
	}
	return sending, stop
}

// ReadConfig reads a JSON file and checks what it says; errors name the file.
func ReadConfig[C interface{ Validate() error }](path string) (C, error) {
	var c C
	text, err := wording.ReadFile(path)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", path, inWords(err, text))
	}
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// inWords says why a text cannot be read as a configuration, without the words of the JSON library.
func inWords(err error, text []byte) error {
	field, words := wording.JSONFault(err)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && field != "" {
		return fmt.Errorf("%s: want %s", words, wanted(wrong.Type.Kind()))
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d is no JSON: want one whole object in braces", 1+bytes.Count(text[:syntax.Offset], []byte("\n")))
	}
	if words != "" {
		return errors.New(words)
	}
	return err
}

func wanted(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint16:
		return "a whole number from 0 to 65535"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object in braces"
	}
	return "a whole number"
}
