package proxy

import (
	"sync"
	"time"

	"vignette.dev/vignette/internal/messagelog"
	"vignette.dev/vignette/internal/proxy/frame"
	"vignette.dev/vignette/internal/traffic/request"
)

// recorder writes the message log, if there is one.
type recorder struct {
	log      *messagelog.Writer
	instance string
	topic    string
	warn     func(text string)

	linkWarnings warnings
}

func (r *recorder) record(at time.Time, status messagelog.Status, id frame.ID, bytes int, text string) {
	if r.log == nil {
		return
	}
	err := r.log.Write(messagelog.Record{TimeNanoseconds: at.UnixNano(), Instance: r.instance, Status: status, ID: id.String(), Topic: r.topic, Bytes: bytes, Text: text})
	if err != nil {
		r.warn("records of the message log are lost: the disk is full or fails")
	}
}

// failed writes why a request has no response.
func (r *recorder) failed(id frame.ID, reason request.Reason, detail string) {
	r.record(time.Now(), messagelog.Failed, id, 0, (&request.Failure{Reason: reason, Detail: detail}).Error())
}

// warnings says the same of the link only once in a while.
type warnings struct {
	mu   sync.Mutex
	last string
	at   time.Time
}

// warnOnce tells people why the link does not carry, once until the reason changes or a minute has passed.
func (r *recorder) warnOnce(err error) {
	r.linkWarnings.mu.Lock()
	defer r.linkWarnings.mu.Unlock()
	if text := err.Error(); text != r.linkWarnings.last || time.Since(r.linkWarnings.at) > time.Minute {
		r.linkWarnings.last, r.linkWarnings.at = text, time.Now()
		r.warn("the link does not carry: " + text)
	}
}
