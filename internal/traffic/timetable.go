package traffic

import (
	"math"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/mgen"
	"vignette.dev/vignette/internal/traffic/payload"
	"vignette.dev/vignette/internal/traffic/payload/bytes"
	"vignette.dev/vignette/internal/traffic/payload/military"
	"vignette.dev/vignette/internal/traffic/payload/track"
	"vignette.dev/vignette/internal/trafficconfig"
)

// timetable has the messages of a publisher and their times.
type timetable interface {
	// due returns when a message is due, relative to the first possible time; false if there are fewer. Numbers start at 1.
	due(number int64) (time.Duration, bool)
	// topic returns that of a message.
	topic(number int64) string
	// content appends a message with an id, made at a time, to dst.
	content(dst []byte, number int64, id string, at time.Time) []byte
	// reported returns the sender's position in a message made at a time; nil for none.
	reported(at time.Time) *[3]float64
	// largest returns topic and size of the largest message.
	largest() (topic string, size int)
}

// newTimetable returns the timetable of a configuration.
func newTimetable(config trafficconfig.Config) (timetable, error) {
	switch p := config.Publish; {
	case len(p.Messages) > 0:
		return scripted{entity: config.Entity, messages: p.Messages}, nil
	case p.Pattern != "":
		return newPatterned(config)
	}
	return newPeriodic(config)
}

// periodic is the timetable of periodic messages of one kind.
type periodic struct {
	periodSeconds float64
	to            string
	size          int
	maker         payload.Maker
	// platform that the messages report; nil for none.
	platform *track.Platform
}

func newPeriodic(config trafficconfig.Config) (*periodic, error) {
	sender := payload.Sender{Country: config.Country, Unit: config.Unit, Entity: config.Entity}
	sender, platform, err := sender.OnNode(config.Publish.Payload)
	if err != nil {
		return nil, err
	}
	maker, err := newMaker(config, sender)
	if err != nil {
		return nil, err
	}
	probe, err := newMaker(config, sender) // the real one starts with its first message
	if err != nil {
		return nil, err
	}
	size := len(probe.Append(nil, messagelog.MessageID(config.Entity, 999999), time.Now()))
	return &periodic{periodSeconds: config.Publish.PeriodSeconds, to: config.Publish.Topic, size: size, maker: maker, platform: platform}, nil
}

func (p *periodic) reported(at time.Time) *[3]float64 {
	if p.platform == nil {
		return nil
	}
	return p.platform.Reported(at)
}

func newMaker(config trafficconfig.Config, sender payload.Sender) (payload.Maker, error) {
	p := config.Publish
	if p.Encoding == "" && p.Compression == "" {
		return payload.New(p.Payload, sender, config.Seed)
	}
	return payload.NewEncoded(p.Payload, p.Encoding, p.Compression, sender, config.Seed)
}

func (p *periodic) due(number int64) (time.Duration, bool) {
	return time.Duration(math.Round(float64(number-1) * p.periodSeconds * 1e9)), true
}

func (p *periodic) topic(int64) string { return p.to }

func (p *periodic) content(dst []byte, _ int64, id string, at time.Time) []byte {
	return p.maker.Append(dst, id, at)
}

func (p *periodic) largest() (string, int) { return p.to, p.size }

// patterned is the timetable of an MGEN script, which gives times and sizes.
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

func (p *patterned) reported(time.Time) *[3]float64 { return nil }

func (p *patterned) topic(int64) string { return p.to }

func (p *patterned) content(dst []byte, number int64, id string, at time.Time) []byte {
	m, _ := p.schedule.Message(number) // due has been called for it
	p.maker.Resize(m.Bytes)
	return p.maker.Append(dst, id, at)
}

func (p *patterned) largest() (string, int) { return p.to, p.most }

// scripted is the timetable of a script with each message.
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

func (s scripted) reported(time.Time) *[3]float64 { return nil }

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
