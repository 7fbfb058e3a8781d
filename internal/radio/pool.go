package radio

// Recycled keeps things for another use, so that models do not allocate per frame.
type Recycled[T any] struct{ kept []*T }

// Get returns one as it was kept, or a new one.
func (r *Recycled[T]) Get() *T {
	last := len(r.kept) - 1
	if last < 0 {
		return new(T)
	}
	x := r.kept[last]
	r.kept = r.kept[:last]
	return x
}

// Keep keeps those that nothing refers to any more.
func (r *Recycled[T]) Keep(all ...*T) { r.kept = append(r.kept, all...) }

// Waiting frames are copied into buffers of few sizes. Position reports are far smaller than an MTU, and
// thousands of them may wait at a slow link.
var bufferSizes = [...]int{256, 1024, 2048, 10240, 65536}

// pool recycles frames with their buffers; it belongs to one engine.
type pool struct {
	free  [len(bufferSizes)]*Frame
	count [len(bufferSizes)]int
	// peak is the highest number of frames in use since the last trim.
	inUse, peak [len(bufferSizes)]int
}

// get returns a frame with a copy of data.
func (p *pool) get(data []byte) *Frame {
	class := 0
	for bufferSizes[class] < len(data) {
		class++
	}
	f := p.free[class]
	if f == nil {
		f = &Frame{Data: make([]byte, bufferSizes[class]), class: class}
	} else {
		p.free[class], f.next = f.next, nil
		p.count[class]--
	}
	p.inUse[class]++
	p.peak[class] = max(p.peak[class], p.inUse[class])
	f.Data = f.Data[:len(data)]
	copy(f.Data, data)
	return f
}

// put returns a frame to the pool.
func (p *pool) put(f *Frame) {
	*f = Frame{Data: f.Data[:0], class: f.class, next: p.free[f.class]}
	p.free[f.class] = f
	p.count[f.class]++
	p.inUse[f.class]--
}

// trim frees buffers that were not needed since the last trim.
func (p *pool) trim() {
	for class := range p.free {
		for p.count[class] > 0 && p.count[class]+p.inUse[class] > p.peak[class]+64 {
			p.free[class], p.free[class].next = p.free[class].next, nil
			p.count[class]--
		}
		p.peak[class] = p.inUse[class]
	}
}
