package messaging

import (
	"math"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/messaging/content"
	"vignette.dev/vignette/internal/messagingconfig"
)

// scheduled is one message: when it is due, to whom, and its content.
type scheduled struct {
	after   time.Duration
	to      messagingconfig.Addressee
	content content.Content
}

// schedule has the messages of a service, by numbers from 1 at each planned start. A message to several addressees is several requests with a number each.
type schedule interface {
	// message returns the one of a number; false if there are fewer.
	message(number int64) (scheduled, bool)
}

// firstNumber is the number of the first message. A service that crashed leaves out those that are past.
func firstNumber(s schedule, n messagelog.Numbers, elapsed time.Duration) int64 {
	return n.First(func(sinceStart int64) bool {
		m, ok := s.message(sinceStart)
		return ok && m.after < elapsed
	})
}

func newSchedule(config messagingconfig.Config) (schedule, error) {
	switch {
	case config.Push != nil:
		return newPeriodic(config)
	case len(config.Messages) > 0:
		return newScripted(config)
	}
	return scripted(nil), nil
}

// scripted is the schedule of a script.
type scripted []scheduled

func newScripted(config messagingconfig.Config) (all scripted, err error) {
	for _, m := range config.Messages {
		made, err := content.Scripted(config, m)
		if err != nil {
			return nil, err
		}
		for _, to := range config.AddresseesOf(m.To) {
			all = append(all, scheduled{after: seconds(m.AtSeconds), to: to, content: made})
		}
	}
	return all, nil
}

func (s scripted) message(number int64) (scheduled, bool) {
	if number > int64(len(s)) {
		return scheduled{}, false
	}
	return s[number-1], true
}

// periodic is the schedule of a push.
type periodic struct {
	push    messagingconfig.Push
	to      []messagingconfig.Addressee
	content content.Content
}

func newPeriodic(config messagingconfig.Config) (schedule, error) {
	made, err := content.OfKind(config, config.Instance, config.Push.Payload)
	return periodic{push: *config.Push, to: config.AddresseesOf(config.Push.To), content: made}, err
}

func (p periodic) message(number int64) (scheduled, bool) {
	addressees := int64(len(p.to))
	round, i := (number-1)/addressees, (number-1)%addressees
	return scheduled{after: seconds(p.push.FirstAfterSeconds + float64(round)*p.push.PeriodSeconds), to: p.to[i], content: p.content}, true
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
