package worker

import "errors"

// refusal is an error about a part of a spec that no retry can apply.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// asRefusal marks an error as a refusal; nil stays nil.
func asRefusal(err error) error {
	if err == nil {
		return nil
	}
	return refusal{err}
}

// firstRefusal returns the text of the first refusal in an error, or "".
func firstRefusal(err error) string {
	var r refusal
	if errors.As(err, &r) {
		return r.Error()
	}
	return ""
}

// Refused returns what of a network's spec this host cannot apply; empty for nothing.
func (m *Manager) Refused(uid string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.networks[uid]
	if n == nil {
		return ""
	}
	return firstRefusal(errors.Join(append(m.troubles(uid, n), m.captureErrorOf(uid))...))
}
