package radio

// release is a frame's place in the heap.
type release struct {
	due   int64
	order uint64 // keeps the order of frames with equal times
	frame *Frame
}

// heap has the frame with the earliest time at index 0. container/heap would allocate for every frame.
type heap struct {
	items []release
	order uint64
}

func (h *heap) push(due int64, f *Frame) {
	h.order++
	h.items = append(h.items, release{due, h.order, f})
	i := len(h.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.items[i].before(&h.items[parent]) {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

func (h *heap) pop() *Frame {
	first := h.items[0].frame
	last := len(h.items) - 1
	h.items[0] = h.items[last]
	h.items[last] = release{}
	h.items = h.items[:last]
	h.sink()
	return first
}

func (h *heap) sink() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.items); child++ {
			if h.items[child].before(&h.items[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.items[i], h.items[least] = h.items[least], h.items[i]
		i = least
	}
}

func (r *release) before(other *release) bool {
	return r.due < other.due || r.due == other.due && r.order < other.order
}
