package radio

// Interval of time in which something was not done when it was due. Times are nanoseconds of CLOCK_MONOTONIC.
type Interval struct {
	From, To int64
	// Worst lateness that was seen, nanoseconds.
	Worst int64
	// Count of slots that were missed; 0 for loops.
	Count int64
}

// mostIntervals are kept apart.
const mostIntervals = 64

// Intervals are kept until somebody takes them. Where they become too many, neighbours become one: none is lost.
type Intervals struct{ all []Interval }

// Add an interval that ends no sooner than those before it.
func (i *Intervals) Add(n Interval) {
	for last := len(i.all) - 1; last >= 0 && i.all[last].To >= n.From; last-- {
		n = i.all[last].and(n)
		i.all = i.all[:last]
	}
	if len(i.all) == mostIntervals {
		i.joinNearest()
	}
	i.all = append(i.all, n)
}

func (i Interval) and(n Interval) Interval {
	return Interval{min(i.From, n.From), max(i.To, n.To), max(i.Worst, n.Worst), i.Count + n.Count}
}

func (i *Intervals) joinNearest() {
	nearest := 1
	for k := range i.all[1:] {
		if i.all[k+1].From-i.all[k].To < i.all[nearest].From-i.all[nearest-1].To {
			nearest = k + 1
		}
	}
	i.all[nearest-1] = i.all[nearest-1].and(i.all[nearest])
	i.all = append(i.all[:nearest], i.all[nearest+1:]...)
}

// Take hands over all intervals, in order.
func (i *Intervals) Take() []Interval {
	all := i.all
	i.all = nil
	return all
}
