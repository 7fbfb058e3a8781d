// Package emaned drives the EMANE processes of one network on one host, from inside the network namespace of
// their pod. It moves the members' radios there, publishes the scenario's events and TDMA schedules, applies
// changes, and reads the counters.
package emaned

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"vignette.dev/vignette/internal/bell"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/emane/ota"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/tdma"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/veth"
	"vignette.dev/vignette/internal/scenario"
	"vignette.dev/vignette/internal/wording"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// scrapeInterval of the processes' counters, which are sampled each second.
	scrapeInterval = 500 * time.Millisecond
	// publishInterval after which all events are published again, for processes that missed them: EMANE
	// reports none as missing.
	publishInterval = 2 * time.Second
	// controlTimeout of a request. A process that does not answer delays the others that long.
	controlTimeout = 2 * time.Second
	// checkInterval between checks of the pod and the members' radios.
	checkInterval = 200 * time.Millisecond
	// mostNamed processes in a trouble.
	mostNamed = 3
)

// Options of a Driver.
type Options struct {
	// Find opens the network namespace of the EMANE pod of that UID.
	Find func(podUID string) (*os.File, error)
	Log  *slog.Logger
	// Changed is called when Ready, Silent or Trouble may have changed. It must return at once.
	Changed func()
	// Channel takes the sockets of the processes' over-the-air channel if it is relayed, and closes them;
	// nil ends that.
	Channel func(*ota.Sockets) error
	// Step and Change are called with the lateness of an event of the scenario and of a change.
	Step, Change func(late time.Duration)
	// Published is until when an earlier worker published the scenario's events, by CLOCK_REALTIME; 0 for none. The first
	// replay begins there.
	Published int64
}

// Input describes the network.
type Input struct {
	// Network, which must not be changed.
	Network *v1alpha1.RadioNetwork
	// PodUID of EMANE's pod on this host; empty if there is none.
	PodUID   string
	Scenario *scenario.Scenario
	// Relayed reports whether some members are on other hosts, or other networks are in the spectrum.
	Relayed bool
	// Neighbours are the members of those other networks.
	Neighbours []v1alpha1.Member
	// Parked are the names of the attached members' veth ends, by NEM id.
	Parked map[int32]string
	// Trouble is why the scenario cannot be replayed, or nil.
	Trouble error

	names map[int]string // of the members' nodes by NEM id
	left  []int32        // NEM ids of radios that have left since takeInput, even if another has come
}

// Driver of one network's processes on this host.
type Driver struct {
	Options
	stop context.CancelFunc
	wake bell.Bell
	// frames is held while a member's frame is copied, because a network's captures have one ring.
	frames sync.Mutex

	mu         sync.Mutex
	input      Input
	statistics map[int32]emane.Statistics
	ready      map[int32]bool
	silent     map[int32]bool
	trouble    error
	lateness   lateness
}

// Start drives the processes until Stop.
func Start(o Options, in Input) *Driver {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Driver{Options: o, stop: cancel, wake: bell.New(), statistics: map[int32]emane.Statistics{}, ready: map[int32]bool{}}
	d.Set(in)
	go func() {
		for ctx.Err() == nil {
			d.setTrouble(d.run(ctx))
			d.wait(ctx, checkInterval)
		}
	}()
	return d
}

// Stop ends the driver without waiting. The processes continue as they are.
func (d *Driver) Stop() { d.stop() }

// Set replaces the input.
func (d *Driver) Set(in Input) {
	in.names = map[int]string{}
	for _, m := range in.Network.Spec.Members {
		in.names[int(m.NEM)] = m.Node
	}
	d.mu.Lock()
	in.left = d.input.left
	for nem := range d.input.Parked {
		if in.Parked[nem] == "" {
			in.left = append(in.left, nem)
		}
	}
	d.input = in
	maps.DeleteFunc(d.ready, func(nem int32, _ bool) bool { return in.Parked[nem] == "" })
	maps.DeleteFunc(d.statistics, func(nem int32, _ emane.Statistics) bool { return in.Parked[nem] == "" })
	d.mu.Unlock()
	d.wake.Ring()
}

// Ready reports whether a member's process answers and, with TDMA, has its schedule.
func (d *Driver) Ready(nem int32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ready[nem]
}

// Silent reports whether a member's radio may not transmit.
func (d *Driver) Silent(nem int32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.silent[nem]
}

// setSilent notes which radios may not transmit.
func (d *Driver) setSilent(members []v1alpha1.Member, radios []emane.Radio) {
	silent := map[int32]bool{}
	for i := range members {
		silent[members[i].NEM] = radios[i].Silent
	}
	d.mu.Lock()
	same := maps.Equal(d.silent, silent)
	d.silent = silent
	d.mu.Unlock()
	if !same {
		d.Changed()
	}
}

// Trouble returns what the driver waits for, or what fails.
func (d *Driver) Trouble() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.input.Trouble, d.trouble)
}

// Statistics returns a member's statistics as last read, and whether they have been read.
func (d *Driver) Statistics(nem int32) (emane.Statistics, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, known := d.statistics[nem]
	return s, known
}

// CaptureLock returns the lock that is held while a member's frame is copied.
func (d *Driver) CaptureLock() *sync.Mutex { return &d.frames }

func (d *Driver) currentInput() Input {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.input
}

// takeInput is currentInput, and tells once which radios have left.
func (d *Driver) takeInput() Input {
	d.mu.Lock()
	defer d.mu.Unlock()
	in := d.input
	d.input.left = nil
	return in
}

// setTrouble sets the trouble, nil when it is over.
func (d *Driver) setTrouble(err error) {
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	d.mu.Lock()
	same := fmt.Sprint(d.trouble) == fmt.Sprint(err)
	d.trouble = err
	d.mu.Unlock()
	if !same {
		d.Log.Info("EMANE of a network", "network", d.currentInput().Network.Name, "trouble", err)
		d.Changed()
	}
}

func (d *Driver) wait(ctx context.Context, longest time.Duration) {
	select {
	case <-ctx.Done():
	case <-d.wake:
	case <-time.After(longest):
	}
}

// run drives the processes of the current pod, until something fails or the pod changes.
func (d *Driver) run(ctx context.Context) error {
	in := d.currentInput()
	if in.PodUID == "" {
		return errors.New("waiting for the pod of EMANE on this host")
	}
	namespace, err := d.Find(in.PodUID)
	if err != nil {
		return fmt.Errorf("waiting for the pod of EMANE on this host: %w", err)
	}
	defer namespace.Close()
	p := &pod{Driver: d, namespace: namespace, uid: in.PodUID, processes: map[int32]*process{}}
	defer p.close()
	return p.run(ctx)
}

// pod is the pod that is driven, by one goroutine.
type pod struct {
	*Driver
	namespace *os.File
	uid       string
	processes map[int32]*process
	schedules *emane.Publisher
	replayed  *scenarioReplay
	// relayed reports whether other hosts get what the processes send over the air.
	relayed bool
	// adapter chooses the rates of adapterOf's members; nil if they are not adaptive.
	adapter   *emane.Adapter
	adapterOf *v1alpha1.RadioNetwork
	// state is that of stateOf, valid from since to until after T0.
	state        *emane.State
	stateOf      *v1alpha1.RadioNetwork
	since, until time.Duration
}

func (p *pod) run(ctx context.Context) error {
	var scraped time.Time
	for ctx.Err() == nil {
		in := p.takeInput()
		if in.PodUID != p.uid {
			return nil
		}
		if err := p.placeRadios(&in); err != nil {
			return err
		}
		if err := p.relay(&in); err != nil {
			return err
		}
		if err := p.replay(ctx, &in); err != nil {
			return err
		}
		if err := p.applyChanges(&in); err != nil {
			return err
		}
		if time.Since(scraped) >= scrapeInterval {
			scraped = time.Now()
			if err := p.scrape(&in); err != nil {
				return err
			}
		}
		p.wait(ctx, p.pause(&in))
	}
	return nil
}

// pause returns the time until the next change or check.
func (p *pod) pause(in *Input) time.Duration {
	longest := checkInterval
	if t, set := offset(&in.Network.Spec); set {
		if next, more := emane.NextChange(&in.Network.Spec, t); more {
			longest = min(longest, max(next-t, time.Millisecond))
		}
	}
	return longest
}

func (p *pod) close() {
	for _, one := range p.processes {
		one.close()
	}
	if p.schedules != nil {
		_ = p.schedules.Close()
	}
	p.endReplay()
	if err := p.endRelay(); err != nil {
		p.Log.Error("end of the relay to other hosts", "error", err)
	}
}

// placeRadios moves the members' radios to their processes.
func (p *pod) placeRadios(in *Input) error {
	for _, nem := range in.left {
		p.dropProcess(nem)
	}
	for nem, parked := range in.Parked {
		if one := p.processes[nem]; one != nil && one.parked == parked {
			continue
		}
		if err := veth.Place(parked, p.namespace, emane.Interface(nem)); err != nil {
			return err
		}
		p.dropProcess(nem)
		p.processes[nem] = &process{nem: nem, parked: parked, control: emane.InPod(in.Network, nem).Control.String()}
	}
	return nil
}

func (p *pod) dropProcess(nem int32) {
	if one := p.processes[nem]; one != nil {
		one.close()
		delete(p.processes, nem)
	}
}

// publisher opens a publisher on the pod's device.
func (p *pod) publisher(network *v1alpha1.RadioNetwork) (*emane.Publisher, error) {
	group := emane.InPod(network, 0).EventGroup
	return netns.Get(p.namespace, func() (*emane.Publisher, error) {
		return emane.NewPublisher(context.Background(), group, emane.PodDevice, 0)
	})
}

// offset returns the time after T0, and whether T0 is set.
func offset(spec *v1alpha1.RadioNetworkSpec) (time.Duration, bool) {
	if spec.T0 == nil {
		return 0, false
	}
	return time.Duration(clock.Realtime() - spec.T0.UnixNano()), true
}

// beforeT0 is used while T0 is not set: until then a scenario stays at its beginning.
const beforeT0 = -10000 * time.Hour

// scenarioReplay is a replay of the scenario in its own goroutine, so that its times do not wait for control ports.
type scenarioReplay struct {
	// members of the network and its neighbours.
	members  []v1alpha1.Member
	scenario *scenario.Scenario
	t0       int64
	stop     context.CancelFunc
	done     chan error
}

// replay starts the replay of the scenario, again if the input has changed.
func (p *pod) replay(ctx context.Context, in *Input) error {
	if in.Trouble != nil {
		return nil
	}
	spec := &in.Network.Spec
	members := slices.Concat(spec.Members, in.Neighbours)
	t0 := int64(0)
	if spec.T0 != nil {
		t0 = spec.T0.UnixNano()
	}
	if r := p.replayed; r != nil {
		select {
		case err := <-r.done:
			p.replayed = nil
			if err != nil {
				return err
			}
		default:
			if r.t0 == t0 && r.scenario == in.Scenario && reflect.DeepEqual(r.members, members) {
				return nil
			}
			p.endReplay()
		}
	}
	feed, err := emane.NewFeed(spec, in.Scenario, in.Neighbours...)
	if err != nil {
		return err
	}
	publisher, err := p.publisher(in.Network)
	if err != nil {
		return err
	}
	from, set := offset(spec)
	if !set {
		from = beforeT0
	}
	published := from
	if set && p.Published != 0 {
		published = min(from, time.Duration(p.Published-t0))
	}
	p.Published = 0
	ctx, cancel := context.WithCancel(ctx)
	r := &scenarioReplay{members: members, scenario: in.Scenario, t0: t0, stop: cancel, done: make(chan error, 1)}
	p.replayed = r
	go func() {
		err := publisher.Replay(ctx, feed, published, from, publishInterval, p.Step)
		r.done <- errors.Join(err, publisher.Close())
	}()
	return nil
}

func (p *pod) endReplay() {
	if p.replayed != nil {
		p.replayed.stop()
		<-p.replayed.done
		p.replayed = nil
	}
}

// currentState returns the state that the network should have.
func (p *pod) currentState(in *Input) (*emane.State, error) {
	t, set := offset(&in.Network.Spec)
	if !set {
		t = beforeT0
	}
	if p.state != nil && p.stateOf == in.Network && t >= p.since && t < p.until {
		return p.state, nil
	}
	state, err := emane.StateAt(&in.Network.Spec, t)
	if err != nil {
		return nil, err
	}
	// A process restarts a schedule that it receives again, so an equal schedule is not sent.
	if p.state != nil && p.state.Schedule != nil && state.Schedule != nil && bytes.Equal(p.state.Schedule.XML(), state.Schedule.XML()) {
		state.Schedule = p.state.Schedule
	}
	next, more := emane.NextChange(&in.Network.Spec, t)
	if !more {
		next = -beforeT0
	}
	p.state, p.stateOf, p.since, p.until = state, in.Network, t, next
	p.setSilent(in.Network.Spec.Members, state.Radios)
	return state, nil
}

// applyChanges configures the processes whose state should be another one.
func (p *pod) applyChanges(in *Input) error {
	state, err := p.currentState(in)
	if err != nil {
		return err
	}
	changed := false
	for i := range in.Network.Spec.Members {
		one := p.processes[in.Network.Spec.Members[i].NEM]
		if one == nil || one.connection == nil {
			continue
		}
		if one.configured == nil || *one.configured != state.Radios[i] {
			changed = changed || one.configured != nil
			if one.trouble = one.configure(&state.Radios[i], &in.Network.Spec.Waveform); one.trouble != nil {
				continue // it is tried again, and reported, with the counters
			}
		}
		rate := p.rateOf(in, one.nem)
		if state.Schedule != nil && (one.schedule != state.Schedule || one.rate != rate) {
			changed = changed || one.schedule != nil && one.schedule != state.Schedule
			if err := p.schedule(in, one, state.Schedule, rate); err != nil {
				return err
			}
		}
	}
	if changed {
		p.reportLateness(in)
	}
	return nil
}

// reportLateness reports the lateness of changes that were applied, unless they were made late.
func (p *pod) reportLateness(in *Input) {
	last := beforeT0
	for _, c := range in.Network.Spec.Changes {
		if at := time.Duration(c.AtNanoseconds); at <= p.since {
			last = max(last, at)
		}
	}
	if now, set := offset(&in.Network.Spec); set && last > beforeT0 {
		p.Change(now - last)
	}
}

// scrape reads all processes' counters. Processes that do not answer are reported and asked again.
func (p *pod) scrape(in *Input) error {
	var silent, idle []string
	var why error
	for _, nem := range slices.Sorted(maps.Keys(p.processes)) {
		if err := p.applyChanges(in); err != nil { // a change does not wait for all answers
			return err
		}
		one := p.processes[nem]
		s, err := p.scrapeOne(in, one)
		if err = errors.Join(one.trouble, err); err != nil {
			silent, why, one.trouble = append(silent, emane.Interface(nem)), err, nil
			p.setAnswer(nem, nil)
			continue
		}
		if s.Schedules == 0 && in.Network.Spec.Waveform.TDMA != nil {
			one.schedule = nil // it is sent again
			idle = append(idle, emane.Interface(nem))
		}
		p.setAnswer(nem, s)
		p.observe(in, s)
	}
	switch {
	case len(silent) > 0:
		p.setTrouble(fmt.Errorf("EMANE's processes of %s do not answer yet: %w", wording.Some(silent, mostNamed), why))
	case len(idle) > 0:
		p.setTrouble(fmt.Errorf("EMANE's processes of %s have no schedule yet", wording.Some(idle, mostNamed)))
	default:
		p.setTrouble(nil)
	}
	return nil
}

// scrapeOne reads a process's counters, and notes its lateness since it was last read. So a process that did not answer for a
// while was late.
func (p *pod) scrapeOne(in *Input, one *process) (*emane.Statistics, error) {
	before, from, asked := one.last, one.lastRead, clock.Monotonic()
	s, err := one.scrape(p.namespace, in.names)
	switch {
	case err != nil && len(before) > 0 && one.silentSince == 0:
		one.silentSince = asked
	case err == nil && len(before) > 0:
		p.noteLateness(one.nem, &before[0], s, from, one.lastRead, one.silentSince)
		one.silentSince = 0
	}
	if err == nil && one.schedule == nil && s.Schedules > 0 {
		err = p.resumeSchedule(in, one)
	}
	return s, err
}

// resumeSchedule finds the schedule that a process has of an earlier driver: it would restart one that it receives again.
func (p *pod) resumeSchedule(in *Input, one *process) error {
	held, err := emane.ReadSchedule(one.connection, one.components)
	if err != nil {
		one.close()
		return err
	}
	rate := p.rateOf(in, one.nem)
	if p.adapter != nil {
		p.adapter.Resume(time.Duration(clock.Monotonic()), int(one.nem), held.Rate())
		rate = p.rateOf(in, one.nem)
	}
	if p.state.Schedule != nil && held.Is(int(one.nem), p.state.Schedule, rate) {
		one.schedule, one.rate = p.state.Schedule, rate
	}
	return nil
}

// setAnswer records a process's statistics, nil if it did not answer.
func (p *pod) setAnswer(nem int32, s *emane.Statistics) {
	p.mu.Lock()
	before := p.ready[nem]
	tdma := p.input.Network.Spec.Waveform.TDMA != nil
	p.ready[nem] = s != nil && (!tdma || s.Schedules > 0)
	after := p.ready[nem]
	if s != nil {
		p.statistics[nem] = *s
	}
	p.mu.Unlock()
	if before != after {
		p.Changed()
	}
}

// noteLateness between two readings of a process's counters. silentSince is since when it did not answer in between, 0 if it did.
func (p *pod) noteLateness(nem int32, before, now *emane.Statistics, from, to, silentSince int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lateness.add(nem, before, now, from, to)
	if silentSince > 0 {
		p.lateness.late.Add(radio.Interval{From: silentSince, To: to, Worst: to - silentSince})
	}
}

// schedule sends a process its schedule.
func (p *pod) schedule(in *Input, one *process, schedule *tdma.Schedule, rate uint64) error {
	if p.schedules == nil {
		publisher, err := p.publisher(in.Network)
		if err != nil {
			return err
		}
		p.schedules = publisher
	}
	one.schedule, one.rate = schedule, rate
	return p.schedules.Publish([]emane.Event{emane.ScheduleAt(int(one.nem), schedule, rate)})
}

// rateOf returns a member's adaptive rate, 0 for that of the schedule.
func (p *pod) rateOf(in *Input, nem int32) uint64 {
	if p.adapterOf == nil || !reflect.DeepEqual(p.adapterOf.Spec.Waveform, in.Network.Spec.Waveform) {
		p.adapter, p.adapterOf = emane.NewAdapter(&in.Network.Spec.Waveform), in.Network
	}
	if p.adapter == nil {
		return 0
	}
	return p.adapter.Rate(time.Duration(clock.Monotonic()), int(nem))
}

// observe passes a receiver's statistics to the adapter.
func (p *pod) observe(in *Input, s *emane.Statistics) {
	if p.adapter == nil {
		return
	}
	for i := range in.Network.Spec.Members {
		if m := &in.Network.Spec.Members[i]; int(m.NEM) == s.NEM {
			p.adapter.Observe(time.Duration(clock.Monotonic()), s, emane.ThermalNoiseDBm(&in.Network.Spec, m, p.state.Schedule))
		}
	}
}

// process of one NEM.
type process struct {
	nem             int32
	parked, control string
	connection      *emane.Control
	components      []emane.Component
	// configured is the radio's last configuration, schedule the last one sent.
	configured *emane.Radio
	// trouble with its configuration.
	trouble  error
	schedule *tdma.Schedule
	// rate is the adaptive one that was sent with the schedule.
	rate uint64
	// last are the statistics as last read, and lastRead the time of that by the monotonic clock.
	last     []emane.Statistics
	lastRead int64
	// silentSince is when the first request since then was made that was not answered; 0 for none.
	silentSince int64
}

// close the connection. The state known of the process holds for the next connection.
func (o *process) close() {
	if o.connection != nil {
		_ = o.connection.Close()
	}
	o.connection, o.configured = nil, nil
}

// connect opens the connection to the control port, inside the namespace.
func (o *process) connect(namespace *os.File) error {
	if o.connection != nil {
		return nil
	}
	connection, err := netns.Get(namespace, func() (net.Conn, error) { return net.DialTimeout("tcp4", o.control, controlTimeout) })
	if err != nil {
		return err
	}
	control := emane.NewControl(connection, controlTimeout)
	nems, err := control.Manifest()
	if err == nil && (len(nems) != 1 || nems[0].ID != int(o.nem)) {
		err = fmt.Errorf("control port %s: NEMs %+v, want %d", o.control, nems, o.nem)
	}
	if err != nil {
		return errors.Join(err, control.Close())
	}
	o.connection, o.components = control, nems[0].Components
	return nil
}

func (o *process) scrape(namespace *os.File, names map[int]string) (*emane.Statistics, error) {
	if err := o.connect(namespace); err != nil {
		return nil, err
	}
	all, err := emane.Scrape(o.last, o.connection, names)
	if err != nil {
		o.close()
		return nil, err
	}
	o.last, o.lastRead = all, clock.Monotonic()
	return &all[0], nil
}

// configure sets the radio's parameters.
func (o *process) configure(r *emane.Radio, w *v1alpha1.WaveformSpec) error {
	parameters := r.Parameters(w)
	for _, c := range o.components {
		if len(parameters[c.Layer]) == 0 {
			continue
		}
		if err := o.connection.Configure(c.BuildID, parameters[c.Layer]); err != nil {
			o.close()
			return fmt.Errorf("%s: %w", emane.Interface(o.nem), err)
		}
	}
	told := *r
	o.configured = &told
	return nil
}
