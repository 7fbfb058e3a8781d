package radio

// Answer returns when every event loop has come round once; never, if one is stuck.
func (e *Engine) Answer() {
	for _, l := range e.loops {
		l.do(func() {})
	}
}
