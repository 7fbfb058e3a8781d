package radio

import "slices"

// Interval of time in which a loop or a station was late. Times are nanoseconds of the
// engine's clock.
type Interval struct {
	From, To int64
	// Worst lateness in the interval, nanoseconds.
	Worst int64
	// Count of missed slots; 0 for loops.
	Count int64
}

// maxIntervals bounds how many intervals are kept.
const maxIntervals = 64

// Intervals collects intervals until Take. Above the limit, the two nearest are merged, so that no lateness
// is lost.
type Intervals struct{ all []Interval }

// Add an interval, which must not end before those already added.
func (i *Intervals) Add(n Interval) {
	for last := len(i.all) - 1; last >= 0 && i.all[last].To >= n.From; last-- {
		n = i.all[last].merge(n)
		i.all = i.all[:last]
	}
	if len(i.all) == maxIntervals {
		i.mergeNearest()
	}
	i.all = append(i.all, n)
}

func (i Interval) merge(n Interval) Interval {
	return Interval{min(i.From, n.From), max(i.To, n.To), max(i.Worst, n.Worst), i.Count + n.Count}
}

func (i *Intervals) mergeNearest() {
	nearest := 1
	for k := range i.all[1:] {
		if i.all[k+1].From-i.all[k].To < i.all[nearest].From-i.all[nearest-1].To {
			nearest = k + 1
		}
	}
	i.all[nearest-1] = i.all[nearest-1].merge(i.all[nearest])
	i.all = append(i.all[:nearest], i.all[nearest+1:]...)
}

// All returns all intervals in order.
func (i *Intervals) All() []Interval { return slices.Clone(i.all) }

// Take returns all intervals in order, and forgets them.
func (i *Intervals) Take() []Interval {
	all := i.all
	i.all = nil
	return all
}
