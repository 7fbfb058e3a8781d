package attach

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/dataplane"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podradio"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/internal/runapi"
)

// restart is what a worker found of the one before.
type restart struct {
	attachments *Attachments
	radios      []*Radio
	// lost has why radios could not be taken over.
	lost map[*Radio]error
	// unread are frames that found no room in TAPs' rings before this worker read them.
	unread map[*Radio]uint64
	// left is what the data plane has from an earlier worker. The frames of its networks flow.
	left dataplane.Left
}

// flows reports whether a radio's frames flow since earlier, or do not need radiod.
func (r *restart) flows(a *Radio) bool {
	return a.Engine != "" || slices.Contains(r.left.Networks, a.NetworkUID)
}

// Restore restores the attachments of earlier workers, with the descriptors that the parent held. If the
// parent has died too, it opens the TAPs in their pods' namespaces. Attachments that are gone are removed;
// failed ones are tried again by Retry. All of it is recorded for the results. Errors are only for the log.
func (m *Attachments) Restore(held map[string]int) error {
	left, err := m.Networks.Left()
	if err != nil {
		return err
	}
	m.workerSeen.Store(m.Folder.LastSeen(state.Worker))
	m.radioSeen.Store(cmp.Or(left.Seen, m.Seen()))
	rebooted, err := m.Folder.NewBoot()
	records, loadErr := state.Load[membership.Attachment](m.Folder, attachmentFiles)
	err = errors.Join(err, loadErr)
	found := &restart{attachments: m, lost: map[*Radio]error{}, unread: map[*Radio]uint64{}, left: left}
	for _, r := range records {
		fd, ok := held[r.ID()]
		if !ok {
			fd = -1
		}
		delete(held, r.ID())
		found.take(podradio.New(r, fd), rebooted)
	}
	found.recoverCounters()
	m.Networks.Pause()
	for _, a := range found.radios {
		err = errors.Join(err, found.rejoin(a))
	}
	err = errors.Join(err, m.Networks.Resume())
	to := clock.Realtime()
	for id, fd := range held {
		err = errors.Join(err, tap.Destroy(fd), m.Keeper.Drop(id))
	}
	found.countUnreadDrops()
	return errors.Join(err, found.recordGaps(to), m.Networks.Restored(), m.Folder.Keep(counterFiles, idsOf(found.radios)...), removeTemporary())
}

var errRebooted = fmt.Errorf("%w: the host was rebooted", netns.ErrGone)

// take restores an attachment's descriptor and counters.
func (r *restart) take(a *Radio, rebooted bool) {
	r.radios = append(r.radios, a)
	if err := r.tryTake(a, rebooted); err != nil {
		r.lost[a] = err
	}
}

func (r *restart) tryTake(a *Radio, rebooted bool) error {
	fresh := r.attachments.openCounters(a)
	switch {
	case rebooted:
		return errRebooted // another namespace may have the number now
	case a.Descriptor() < 0:
		if err := r.attachments.adopt(a); err != nil {
			return err
		}
	}
	if fresh && a.Engine == "" {
		state, err := r.attachments.interfaces.State(a)
		if err != nil {
			return err
		}
		a.Counters.Ledger.Reset(state.Traffic)
		a.Counters.RingDrops = state.RingDrops
	}
	return nil
}

// recoverCounters counts the earlier worker's frames under way as lost, network by network.
func (r *restart) recoverCounters() {
	networks := map[string][]*Radio{}
	for _, a := range r.radios {
		if !r.flows(a) {
			networks[a.NetworkUID] = append(networks[a.NetworkUID], a)
		}
	}
	for _, attachments := range networks {
		ledgers := make([]*radio.Ledger, len(attachments))
		for i, a := range attachments {
			ledgers[i] = &a.Counters.Ledger
		}
		radio.RecoverLedgers(ledgers, func(i int) (radio.Traffic, error) {
			state, err := r.attachments.interfaces.State(attachments[i])
			return state.Traffic, err
		})
	}
}

// rejoin joins an attachment again, or removes one that is lost.
func (r *restart) rejoin(a *Radio) error {
	defer r.attachments.LockPod(a.PodUID)()
	err := r.lost[a]
	if err == nil {
		if err = r.attachments.join(a); err == nil {
			return nil
		}
		r.lost[a] = err
		return errors.Join(restoreError(a, err), r.attachments.remove(a))
	}
	if errors.Is(err, netns.ErrGone) {
		return r.attachments.removeGone(a)
	}
	r.attachments.mu.Lock()
	r.attachments.missing[a.Key()] = &missing{Radio: a, err: err, next: time.Now().Add(firstRetry), pause: firstRetry}
	r.attachments.mu.Unlock()
	return restoreError(a, err)
}

// removeGone removes what is left of a radio that could not be restored and has gone; its pod is locked.
func (m *Attachments) removeGone(a *Radio) error {
	if a.Descriptor() >= 0 {
		return m.remove(a)
	}
	return errors.Join(m.Networks.Leave(a), m.removeFiles(a))
}

func restoreError(a *Radio, err error) error {
	return fmt.Errorf("restore %s of pod %s: %w", a.Interface, a.PodUID, err)
}

func idsOf(all []*Radio) (ids []string) {
	for _, a := range all {
		ids = append(ids, a.ID())
	}
	return ids
}

// removeFiles removes the files of an attachment.
func (m *Attachments) removeFiles(a *Radio) error {
	return errors.Join(m.Folder.Remove(attachmentFiles, a.ID()), m.Folder.Remove(counterFiles, a.ID()))
}

// adopt takes over the radio of a record, if it is still there. The record says so even where the parent does not hold the
// descriptor yet, because the radio is open.
func (m *Attachments) adopt(a *Radio) error {
	err := m.interfaces.Adopt(a, ownerOf(m.instance, a))
	if err != nil && a.Descriptor() < 0 {
		return err
	}
	return errors.Join(err, m.Folder.Put(attachmentFiles, a.ID(), &a.Attachment))
}

// removeTemporary removes TAPs that never reached their pods.
func removeTemporary() error {
	links, err := net.Interfaces()
	for _, l := range links {
		if strings.HasPrefix(l.Name, tap.TemporaryPrefix) {
			_, reclaimErr := tap.RemoveUnused(l.Name, l.Index)
			err = errors.Join(err, reclaimErr)
		}
	}
	return err
}

const (
	firstRetry   = 100 * time.Millisecond
	longestRetry = 30 * time.Second
)

// missing is an attachment that could not be restored, and is tried again.
type missing struct {
	*Radio
	err   error
	next  time.Time
	pause time.Duration
}

// String is its message in the RadioNetwork's status.
func (x *missing) String() string {
	return fmt.Sprintf("%s has no radio since radiod was restarted; it is tried again: %v", x.Member.Node, x.err)
}

// Retry tries again the attachments that Restore could not restore, when their time has come.
func (m *Attachments) Retry(now time.Time) {
	m.mu.Lock()
	var due []*missing
	for _, x := range m.missing {
		if !now.Before(x.next) {
			due = append(due, x)
		}
	}
	m.mu.Unlock()
	for _, x := range due {
		if err := x.retry(m, now); err != nil {
			m.Log.Error("after a restart", "pod", x.PodUID, "interface", x.Interface, "error", err)
		}
	}
}

func (x *missing) retry(m *Attachments, now time.Time) error {
	defer m.LockPod(x.PodUID)()
	var err error
	switch {
	case m.existing(x.Key()) != nil: // its files belong to the new one, and its id at the parent
		m.interfaces.Release(x.Radio)
		x.end(m)
		return nil
	case !m.Members.Lists(x.NetworkUID, x.Key()):
		err = fmt.Errorf("%w: no RadioNetwork lists it any more", netns.ErrGone)
	default:
		err = m.adopt(x.Radio)
	}
	if err == nil {
		err = m.join(x.Radio)
	}
	switch {
	case err == nil:
		x.end(m)
		m.Log.Info("restored a radio after a retry", "pod", x.PodUID, "interface", x.Interface)
		to := clock.Realtime()
		return m.Record(x.RunUID, []runapi.RadioGap{{TimeNanoseconds: to, Gap: gapLost, Node: x.Member.Node, FromNanoseconds: m.radioSeen.Load(), ToNanoseconds: to,
			Reason: x.Interface + " could not be taken up at once after a restart of radiod"}})
	case errors.Is(err, netns.ErrGone):
		x.end(m)
		return m.removeGone(x.Radio)
	default:
		m.mu.Lock()
		defer m.mu.Unlock()
		x.pause = min(2*x.pause, longestRetry)
		x.err, x.next = err, now.Add(x.pause)
		return nil
	}
}

// end removes an attachment from the missing ones.
func (x *missing) end(m *Attachments) {
	m.mu.Lock()
	delete(m.missing, x.Key())
	m.mu.Unlock()
	m.Changed(x.NetworkUID)
}

// Missing describes the attachments of a network that could not be restored yet.
func (m *Attachments) Missing(uid string) (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.missing {
		if x.NetworkUID == uid {
			all = append(all, x.String())
		}
	}
	return all
}

// Seen is when the worker before was last seen, by CLOCK_REALTIME.
func (m *Attachments) Seen() int64 { return m.workerSeen.Load() }

// The kinds of RadioGap.
const (
	gapRestarted = "radiodRestarted"
	gapLost      = "attachmentLost"
	gapCapture   = "capture"
)

// recordGaps records the time without radio between the last data plane and this one, for every run with
// attachments here, and the attachments lost meanwhile. The next worker records those that could not be
// written.
func (r *restart) recordGaps(to int64) (failed error) {
	now := to
	if r.left.Resumed != 0 { // by a worker that ended before it recorded that
		to = r.left.Resumed
	}
	from := cmp.Or(r.attachments.radioSeen.Load(), to)
	byRun := map[string][]*Radio{}
	for _, a := range r.radios {
		if a.RunUID != "" {
			byRun[a.RunUID] = append(byRun[a.RunUID], a)
		}
	}
	for uid, attachments := range byRun {
		gap := runapi.RadioGap{TimeNanoseconds: to, Gap: gapRestarted, FromNanoseconds: from, ToNanoseconds: to}
		gaps := []runapi.RadioGap{}
		drops := uint64(0)
		for _, a := range attachments {
			gap.FramesLost += a.Counters.UnreportedLosses()
			drops += r.unread[a]
			if err := r.lost[a]; err != nil {
				gaps = append(gaps, runapi.RadioGap{TimeNanoseconds: to, Gap: gapLost, Node: a.Member.Node, FromNanoseconds: from,
					Reason: fmt.Sprintf("%s after a restart of radiod: %v", a.Interface, err)})
			}
		}
		gap.Reason = restartReason(attachments, drops)
		if r.left.New {
			gaps = append([]runapi.RadioGap{gap}, gaps...)
		}
		if reason := r.uncaptured(attachments); reason != "" {
			gaps = append(gaps, runapi.RadioGap{TimeNanoseconds: now, Gap: gapCapture, FromNanoseconds: cmp.Or(r.attachments.Seen(), now), ToNanoseconds: now, Reason: reason})
		}
		if len(gaps) == 0 {
			continue
		}
		if err := r.attachments.Record(uid, gaps); err != nil {
			failed = err
			continue
		}
		for _, a := range attachments {
			a.Counters.Reported += a.Counters.UnreportedLosses()
		}
	}
	return failed
}

// restartReason describes a restart's effect on frames. unread frames found no room in their nodes'
// interfaces meanwhile.
func restartReason(attachments []*Radio, unread uint64) string {
	var effects []string
	if slices.ContainsFunc(attachments, func(a *Radio) bool { return a.Engine == "" }) {
		waited := "frames under way were lost, what nodes sent meanwhile waited in their interfaces"
		if unread > 0 {
			waited += fmt.Sprintf(", which had no room for %d more frames", unread)
		}
		effects = append(effects, waited)
	}
	if slices.ContainsFunc(attachments, func(a *Radio) bool { return a.Engine != "" }) {
		effects = append(effects, "EMANE carried frames meanwhile, but none to other hosts or networks; nobody measured whether it was late")
	}
	return "radiod's data plane or radiod was restarted: " + strings.Join(effects, "; ")
}

// uncaptured says which captures lack frames because no worker copied those that EMANE carried meanwhile; empty for none.
func (r *restart) uncaptured(attachments []*Radio) string {
	var names []string
	for _, a := range attachments {
		network, _ := r.attachments.Members.Member(a.Key())
		if a.Engine != "" && r.lost[a] == nil && network != nil && network.Spec.Captured(a.Member.Node) {
			names = append(names, network.Spec.Network)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "radiod was restarted: captures of " + strings.Join(slices.Compact(names), ", ") + ", which EMANE carries, lack the frames of that time"
}

// countUnreadDrops counts the frames that found no room in TAPs' rings since an earlier worker was last seen. They
// belong to the restart and are not overload.
func (r *restart) countUnreadDrops() {
	for _, a := range r.radios {
		if r.lost[a] != nil || r.flows(a) {
			continue
		}
		before := a.Counters.RingDrops
		r.attachments.interfaces.ReadRing(a)
		r.unread[a] = a.Counters.RingDrops - before
		a.Counters.RingRestarted += r.unread[a]
	}
}
