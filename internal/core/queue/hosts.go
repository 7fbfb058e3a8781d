package queue

import (
	"slices"
	"sort"
)

// freeTable is what hosts have free, with a row of kinds for each host.
type freeTable struct {
	kinds int
	cells []int64
	total []int64
}

func newTable(kinds, hosts int) *freeTable {
	return &freeTable{kinds: kinds, cells: make([]int64, kinds*hosts), total: make([]int64, kinds)}
}

func newTableOf(hosts []Host, kinds int, of func(*Host) Amount) *freeTable {
	t := newTable(kinds, len(hosts))
	for i := range hosts {
		copy(t.row(i), of(&hosts[i]))
	}
	t.sum()
	return t
}

func (t *freeTable) row(host int) []int64 { return t.cells[host*t.kinds : (host+1)*t.kinds] }

func (t *freeTable) hosts() int {
	if t.kinds == 0 {
		return 0
	}
	return len(t.cells) / t.kinds
}

func (t *freeTable) sum() {
	clear(t.total)
	for at := 0; at < len(t.cells); at += t.kinds {
		for k := range t.total {
			t.total[k] = min(t.total[k]+max(t.cells[at+k], 0), Unlimited)
		}
	}
}

func (t *freeTable) copyFrom(other *freeTable) {
	t.kinds = other.kinds
	t.cells = append(t.cells[:0], other.cells...)
	t.total = append(t.total[:0], other.total...)
}

// takeMinimum keeps what is free in both tables.
func (t *freeTable) takeMinimum(other *freeTable) {
	for i, v := range other.cells {
		t.cells[i] = min(t.cells[i], v)
	}
	t.sum()
}

// add adds holdings times sign.
func (t *freeTable) add(holds []Holding, sign int64) {
	for _, hold := range holds {
		row := t.row(hold.Host)
		for k, v := range hold.Taken {
			row[k] += sign * v
			t.total[k] += sign * v
		}
	}
}

// hasRoomFor reports whether there is room for all holdings.
func (t *freeTable) hasRoomFor(holds []Holding) bool {
	t.add(holds, -1)
	defer t.add(holds, 1)
	for _, hold := range holds {
		row := t.row(hold.Host)
		for k, v := range hold.Taken {
			if v > 0 && row[k] < 0 {
				return false
			}
		}
	}
	return true
}

// fitsInTotal is a quick check. It returns false if a demand is larger than all that is free.
func (t *freeTable) fitsInTotal(total Amount) bool {
	for k, v := range total {
		if v > 0 && v > t.total[k] {
			return false
		}
	}
	return true
}

// mayFit is a closer check. It returns false if the pods of one shape alone do not fit.
func (t *freeTable) mayFit(d *Demand) bool {
	if !t.fitsInTotal(d.Total) {
		return false
	}
	for i := range d.Shapes {
		if !t.fitsShape(&d.Shapes[i]) {
			return false
		}
	}
	return true
}

// fitsShape reports whether all pods of one shape fit.
func (t *freeTable) fitsShape(shape *Shape) bool {
	left := shape.Count
	for host := 0; host < t.hosts() && left > 0; host++ {
		left -= t.capacity(host, shape)
	}
	return left <= 0
}

// place places all pods of a demand and takes their room. If one does not fit it returns false, and the table is unusable.
// Equal pods go where most pods are free, because the scheduler spreads them.
func (t *freeTable) place(d *Demand) (holds []Holding, placed int64, ok bool) {
	ok = true
	takes, pods := make([]int64, t.hosts()), make([]int64, t.hosts())
	for i := range d.Shapes {
		shape := &d.Shapes[i]
		count := t.distribute(shape, takes, pods)
		placed += count
		ok = ok && count == shape.Count
		for host, n := range takes {
			if n == 0 {
				continue
			}
			taken := make(Amount, len(shape.Each))
			row := t.row(host)
			for k, each := range shape.Each {
				taken[k] = n * each
				row[k] -= taken[k]
				t.total[k] -= taken[k]
			}
			holds = append(holds, Holding{Host: host, Taken: taken})
		}
	}
	return holds, placed, ok
}

// distribute computes how many of a shape's pods each host takes, and their sum. pods is a buffer.
func (t *freeTable) distribute(shape *Shape, takes, pods []int64) (all int64) {
	most := int64(0)
	for host := range takes {
		takes[host], pods[host] = t.capacity(host, shape), t.row(host)[kindPods]
		all += takes[host]
		if takes[host] > 0 {
			most = max(most, pods[host])
		}
	}
	if all <= shape.Count {
		return all
	}
	// Hosts are filled down to a common level of free pods: the highest that takes all.
	above := func(host int, level int64) int64 { return min(takes[host], max(pods[host]-level, 0)) }
	depth := sort.Search(int(most), func(depth int) bool {
		sum := int64(0)
		for host := range takes {
			sum += above(host, most-int64(depth))
		}
		return sum >= shape.Count
	})
	level, left := most-int64(depth), shape.Count
	for host := range takes {
		left -= above(host, level+1)
	}
	for host := range takes {
		n := above(host, level+1)
		if left > 0 && above(host, level) > n {
			n, left = n+1, left-1
		}
		takes[host] = n
	}
	return shape.Count
}

// capacity is how many pods of one shape a host takes, at most the shape's count.
func (t *freeTable) capacity(host int, shape *Shape) int64 {
	count, row := shape.Count, t.row(host)
	for k, each := range shape.Each {
		if each == 0 {
			continue
		}
		if row[k] < each*count {
			count = max(row[k], 0) / each
		}
		if count == 0 {
			return 0
		}
	}
	return count
}

// fits reports whether a demand fits, without taking its room.
func (t *freeTable) fits(d *Demand, scratch *freeTable) bool {
	if !t.mayFit(d) {
		return false
	}
	if t.fitsShape(&d.bound) {
		return true
	}
	scratch.copyFrom(t)
	_, _, ok := scratch.place(d)
	return ok
}

func sortShapes(shapes []Shape) {
	slices.SortFunc(shapes, func(a, b Shape) int {
		for k := range max(len(a.Each), len(b.Each)) {
			if difference := b.Each.of(k) - a.Each.of(k); difference != 0 {
				if difference > 0 {
					return 1
				}
				return -1
			}
		}
		return 0
	})
}

func (a Amount) of(kind int) int64 {
	if kind < len(a) {
		return a[kind]
	}
	return 0
}
