package attach

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radiod/membership"
	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/state"
	"vignette.dev/vignette/internal/radiod/tap"
	"vignette.dev/vignette/internal/runapi"
)

// Restore restores the attachments of earlier workers, with the descriptors that the parent held. If the
// parent has died too, it opens the TAPs in their pods' namespaces. Attachments that are gone are removed;
// failed ones are tried again by Retry. All of it is recorded for the results. Errors are only for the log.
func (m *Attachments) Restore(held map[string]int) error {
	m.mu.Lock()
	m.lastWorkerSeen = m.Folder.LastSeen()
	m.mu.Unlock()
	rebooted, err := m.Folder.NewBoot()
	records, loadErr := state.Load[membership.Attachment](m.Folder, attachmentFiles)
	err = errors.Join(err, loadErr)
	var all []*Radio
	lost := map[*Radio]error{}
	for _, r := range records {
		a := &Radio{Attachment: r, fd: -1}
		if fd, ok := held[r.ID()]; ok {
			a.fd = fd
			delete(held, r.ID())
		}
		if takeErr := m.restoreAttachment(a, rebooted); takeErr != nil {
			lost[a] = takeErr
		}
		all = append(all, a)
	}
	m.recoverCounters(all)
	m.Networks.Pause()
	for _, a := range all {
		err = errors.Join(err, m.rejoin(a, lost))
	}
	err = errors.Join(err, m.Networks.Resume())
	to := clock.Realtime()
	for id, fd := range held {
		err = errors.Join(err, tap.Destroy(fd), m.Keeper.Drop(id))
	}
	m.countUnreadDrops(all, lost)
	return errors.Join(err, m.recordGaps(all, lost, to), m.Folder.Keep(counterFiles, idsOf(all)...), removeTemporary())
}

var errRebooted = fmt.Errorf("%w: the host was rebooted", netns.ErrGone)

// restoreAttachment restores an attachment's descriptor and counters.
func (m *Attachments) restoreAttachment(a *Radio, rebooted bool) error {
	book, fresh := m.openCountersOf(a.ID())
	a.Counters = book
	switch {
	case rebooted:
		return errRebooted // another namespace may have the number now
	case a.fd < 0:
		if err := m.adopt(a); err != nil {
			return err
		}
	}
	if fresh && a.Engine == "" {
		state, err := m.stateOf(a)
		if err != nil {
			return err
		}
		a.Counters.Ledger.Reset(state.Traffic)
		a.Counters.ringDrops = state.RingDrops
	}
	return nil
}

// recoverCounters counts the earlier worker's frames under way as lost, network by network.
func (m *Attachments) recoverCounters(all []*Radio) {
	networks := map[string][]*Radio{}
	for _, a := range all {
		if a.Engine == "" { // EMANE's radios do not stop with radiod
			networks[a.NetworkUID] = append(networks[a.NetworkUID], a)
		}
	}
	for _, attachments := range networks {
		ledgers := make([]*radio.Ledger, len(attachments))
		for i, a := range attachments {
			ledgers[i] = &a.Counters.Ledger
		}
		radio.RecoverLedgers(ledgers, func(i int) (radio.Traffic, error) { return m.trafficOf(attachments[i]) })
	}
}

// trafficOf returns an attachment's traffic as the kernel counted it.
func (m *Attachments) trafficOf(a *Radio) (radio.Traffic, error) {
	state, err := m.stateOf(a)
	return state.Traffic, err
}

// stateOf returns the state of an attachment's interface.
func (m *Attachments) stateOf(a *Radio) (state podnet.State, err error) {
	namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace)
	if err != nil {
		return state, err
	}
	defer namespace.Close()
	err = netns.Do(namespace, func() (err error) {
		state, err = podnet.Read(a.Link())
		return err
	})
	return state, err
}

// rejoin joins an attachment again, or removes one that is lost.
func (m *Attachments) rejoin(a *Radio, lost map[*Radio]error) error {
	defer m.LockPod(a.PodUID)()
	err := lost[a]
	if err == nil {
		if err = m.join(a); err == nil {
			return nil
		}
		lost[a] = err
		return errors.Join(a.restoreError(err), m.remove(a))
	}
	if errors.Is(err, netns.ErrGone) {
		if a.fd >= 0 {
			return m.remove(a)
		}
		return errors.Join(m.Networks.Leave(a), m.removeFiles(a))
	}
	m.mu.Lock()
	m.missing[a.Key()] = &missing{Radio: a, err: err, next: time.Now().Add(firstRetry), pause: firstRetry}
	m.mu.Unlock()
	return a.restoreError(err)
}

func (a *Radio) restoreError(err error) error {
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

// adopt restores the radio of a record in its pod's namespace, if it is still there.
func (m *Attachments) adopt(a *Radio) error {
	namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace)
	if err != nil {
		return err
	}
	defer namespace.Close()
	if err := netns.Do(namespace, func() error { return a.verifyInterface(m.ownerOf(a)) }); err != nil {
		return err
	}
	return m.carrierOf(a).adopt(a, namespace)
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
		m.retry(x, now)
	}
}

func (m *Attachments) retry(x *missing, now time.Time) {
	defer m.LockPod(x.PodUID)()
	m.mu.Lock()
	replaced, member := m.radios[x.Key()] != nil, m.Members.Lists(x.NetworkUID, x.Key())
	m.mu.Unlock()
	var err error
	switch {
	case replaced: // its files belong to the new one
		m.clearMissing(x)
		return
	case !member:
		err = fmt.Errorf("%w: no RadioNetwork lists it any more", netns.ErrGone)
	case x.fd < 0:
		err = m.adopt(x.Radio)
	}
	if err == nil {
		err = m.join(x.Radio)
	}
	switch {
	case err == nil:
		m.clearMissing(x)
		m.Log.Info("restored a radio after a retry", "pod", x.PodUID, "interface", x.Interface)
		err = m.Record(x.RunUID, []runapi.RadioGap{m.lossEndedGap(x)})
	case errors.Is(err, netns.ErrGone):
		m.clearMissing(x)
		err = errors.Join(m.Networks.Leave(x.Radio), m.removeFiles(x.Radio))
	default:
		x.pause = min(2*x.pause, longestRetry)
		m.mu.Lock()
		x.err, x.next = err, now.Add(x.pause)
		m.mu.Unlock()
		err = nil
	}
	if err != nil {
		m.Log.Error("after a restart", "pod", x.PodUID, "interface", x.Interface, "error", err)
	}
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
func (m *Attachments) Seen() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastWorkerSeen
}

// clearMissing removes an attachment from the missing ones.
func (m *Attachments) clearMissing(x *missing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missing, x.Key())
	m.Changed(x.NetworkUID)
}

func (m *Attachments) lossEndedGap(x *missing) runapi.RadioGap {
	now := clock.Realtime()
	return runapi.RadioGap{TimeNanoseconds: now, Gap: gapLost, Node: x.Member.Node, FromNanoseconds: m.Seen(), ToNanoseconds: now,
		Reason: x.Interface + " could not be taken up at once after a restart of radiod"}
}

// The kinds of RadioGap.
const (
	gapRestarted = "radiodRestarted"
	gapLost      = "attachmentLost"
)

// recordGaps records the time without radio between the last worker and this one, for every run with
// attachments here, and the attachments lost meanwhile. What cannot be written is recorded by the next
// worker.
func (m *Attachments) recordGaps(all []*Radio, lost map[*Radio]error, to int64) (failed error) {
	from := m.Seen()
	if from == 0 {
		from = to
	}
	byRun := map[string][]*Radio{}
	for _, a := range all {
		if a.RunUID != "" {
			byRun[a.RunUID] = append(byRun[a.RunUID], a)
		}
	}
	for uid, attachments := range byRun {
		gap := runapi.RadioGap{TimeNanoseconds: to, Gap: gapRestarted, FromNanoseconds: from, ToNanoseconds: to}
		gaps := []runapi.RadioGap{}
		unread := uint64(0)
		for _, a := range attachments {
			gap.FramesLost += a.Counters.unreportedLosses()
			unread += a.unreadDrops
			if err := lost[a]; err != nil {
				gaps = append(gaps, runapi.RadioGap{TimeNanoseconds: to, Gap: gapLost, Node: a.Member.Node, FromNanoseconds: from,
					Reason: fmt.Sprintf("%s after a restart of radiod: %v", a.Interface, err)})
			}
		}
		gap.Reason = restartReason(unread)
		if err := m.Record(uid, append([]runapi.RadioGap{gap}, gaps...)); err != nil {
			failed = err
			continue
		}
		for _, a := range attachments {
			a.Counters.reported += a.Counters.unreportedLosses()
		}
	}
	return failed
}

// restartReason describes a restart's effect on frames. unread frames found no room in their nodes'
// interfaces meanwhile.
func restartReason(unread uint64) string {
	reason := "radiod's worker or radiod was restarted: frames under way were lost, what nodes sent meanwhile waited in their interfaces"
	if unread > 0 {
		reason += fmt.Sprintf(", which had no room for %d more frames", unread)
	}
	return reason
}

// countUnreadDrops counts the frames that found no room in TAPs' rings since an earlier worker was last seen. They
// belong to the restart and are not overload.
func (m *Attachments) countUnreadDrops(all []*Radio, lost map[*Radio]error) {
	for _, a := range all {
		if lost[a] != nil || a.Engine != "" {
			continue
		}
		before := a.Counters.ringDrops
		if namespace, err := m.Finder.Find(a.NamespacePath, a.Namespace); err == nil {
			m.readRingsIn(namespace, []*Radio{a})
			_ = namespace.Close() // nothing was written
		}
		a.unreadDrops = a.Counters.ringDrops - before
		a.Counters.ringRestarted += a.unreadDrops
	}
}
