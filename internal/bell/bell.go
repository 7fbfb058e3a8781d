// Package bell wakes a goroutine that looks at what has changed.
package bell

// Bell holds one ring at most: its receiver looks at all changes before it.
type Bell chan struct{}

// New makes a silent bell.
func New() Bell { return make(Bell, 1) }

// Ring never blocks.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
