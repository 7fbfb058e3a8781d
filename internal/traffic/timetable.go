package traffic

import (
	"math"
	"time"

	"vignette.dev/vignette/internal/mgen"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/payload/bytes"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/trafficconfig"
)

// timetable says what a publisher sends, and when.
type timetable interface {
	// due is when a message is due, counted from the first moment at which one may be; false where there are fewer. Numbers count from 1.
	due(number int64) (time.Duration, bool)
	// topic of a message.
	topic(number int64) string
	// content adds a message with an id, made at a time, to dst.
	content(dst []byte, number int64, id string, at time.Time) []byte
	// largest message: its topic and size.
	largest() (topic string, size int)
}

// newTimetable of a configuration.
func newTimetable(config trafficconfig.Config) (timetable, error) {
	switch p := config.Publish; {
	case len(p.Messages) > 0:
		return scripted{entity: config.Entity, messages: p.Messages}, nil
	case p.Pattern != "":
		return newPatterned(config)
	}
	return newPeriodic(config)
}

// periodic messages of one kind.
type periodic struct {
	periodSeconds float64
	to            string
	size          int
	maker         payload.Maker
}

func newPeriodic(config trafficconfig.Config) (*periodic, error) {
	sender := payload.Sender{Country: config.Country, Unit: config.Unit, Entity: config.Entity}
	maker, err := payload.New(config.Publish.Payload, sender, config.Seed)
	if err != nil {
		return nil, err
	}
	probe, err := payload.New(config.Publish.Payload, sender, config.Seed) // the real one's first message is still to come
	if err != nil {
		return nil, err
	}
	size := len(probe.Append(nil, messageID(config.Entity, 999999), time.Now()))
	return &periodic{periodSeconds: config.Publish.PeriodSeconds, to: config.Publish.Topic, size: size, maker: maker}, nil
}

func (p *periodic) due(number int64) (time.Duration, bool) {
	return time.Duration(math.Round(float64(number-1) * p.periodSeconds * 1e9)), true
}

func (p *periodic) topic(int64) string { return p.to }

func (p *periodic) content(dst []byte, _ int64, id string, at time.Time) []byte {
	return p.maker.Append(dst, id, at)
}

func (p *periodic) largest() (string, int) { return p.to, p.size }

// patterned messages come when an MGEN script says so, and have the sizes that it says.
type patterned struct {
	schedule *mgen.Schedule
	to       string
	most     int
	maker    *bytes.Maker
}

func newPatterned(config trafficconfig.Config) (*patterned, error) {
	script, err := mgen.Parse(config.Publish.Pattern)
	if err != nil {
		return nil, err
	}
	schedule, err := mgen.NewSchedule(script, config.Seed)
	if err != nil {
		return nil, err
	}
	least, most := script.Sizes()
	maker, err := bytes.New(config.Entity, least, config.Seed)
	return &patterned{schedule: schedule, to: config.Publish.Topic, most: most, maker: maker}, err
}

func (p *patterned) due(number int64) (time.Duration, bool) {
	m, ok := p.schedule.Message(number)
	return m.At, ok
}

func (p *patterned) topic(int64) string { return p.to }

func (p *patterned) content(dst []byte, number int64, id string, at time.Time) []byte {
	m, _ := p.schedule.Message(number) // it was due
	p.maker.Resize(m.Bytes)
	return p.maker.Append(dst, id, at)
}

func (p *patterned) largest() (string, int) { return p.to, p.most }

// scripted messages are each said by a script.
type scripted struct {
	entity   string
	messages []trafficconfig.Message
}

func (s scripted) due(number int64) (time.Duration, bool) {
	if number > int64(len(s.messages)) {
		return 0, false
	}
	return time.Duration(math.Round(s.messages[number-1].AtSeconds * 1e9)), true
}

func (s scripted) topic(number int64) string { return s.messages[number-1].Topic }

func (s scripted) content(dst []byte, number int64, id string, at time.Time) []byte {
	m := s.messages[number-1]
	return military.Append(dst, said(m), id, at, m.Bytes)
}

func said(m trafficconfig.Message) military.Message {
	return military.Message{Type: m.Type, From: m.From, To: m.To, Text: m.Text}
}

func (s scripted) largest() (topic string, size int) {
	for _, m := range s.messages {
		if n := max(m.Bytes, military.Size(said(m), s.entity)); len(m.Topic)+n > len(topic)+size {
			topic, size = m.Topic, n
		}
	}
	return topic, size
}
