package radio

// AwaitLoops returns after every event loop has finished an iteration. It never returns if a loop is stuck.
func (e *Engine) AwaitLoops() {
	for _, l := range e.loops {
		l.do(func() {})
	}
}
