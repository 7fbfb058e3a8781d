package worker

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
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Restore restores the attachments of earlier workers, with the descriptors that the parent held. If the
// parent has died too, it opens the TAPs in their pods' namespaces. Attachments that are gone are removed;
// failed ones are tried again by Retry. All of it is recorded for the results. Errors are only for the log.
func (m *Manager) Restore(held map[string]int) error {
	m.lastWorkerSeen = m.folder.LastSeen()
	rebooted, err := m.folder.NewBoot()
	networks, loadErr := state.Load[v1alpha1.RadioNetwork](m.folder, networkFiles)
	err = errors.Join(err, loadErr)
	for i := range networks {
		err = errors.Join(err, m.SetNetwork(&networks[i]))
	}
	records, loadErr := state.Load[membership.Attachment](m.folder, attachmentFiles)
	err = errors.Join(err, loadErr)
	var all []*attachment
	lost := map[*attachment]error{}
	for _, r := range records {
		a := &attachment{Attachment: r, fd: -1}
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
	m.restoring = true
	for _, a := range all {
		err = errors.Join(err, m.rejoin(a, lost))
	}
	err = errors.Join(err, m.resumeNetworks())
	to := clock.Realtime()
	for id, fd := range held {
		err = errors.Join(err, tap.Destroy(fd), m.Keeper.Drop(id))
	}
	m.countUnreadDrops(all, lost)
	return errors.Join(err, m.recordGaps(all, lost, to), m.folder.Keep(counterFiles, idsOf(all)...), removeTemporary())
}

// resumeNetworks lets frames flow once all nodes are restored, so that the first frames find their receivers.
func (m *Manager) resumeNetworks() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restoring = false
	for _, n := range m.networks {
		if n.running != nil {
			err = errors.Join(err, n.running.Resume())
		}
	}
	return err
}

var errRebooted = fmt.Errorf("%w: the host was rebooted", netns.ErrGone)

// restoreAttachment restores an attachment's descriptor and counters.
func (m *Manager) restoreAttachment(a *attachment, rebooted bool) error {
	book, fresh := m.openCountersOf(a.ID())
	a.counters = book
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
		a.counters.ledger.Reset(state.Traffic)
		a.counters.ringDrops = state.RingDrops
	}
	return nil
}

// recoverCounters counts the earlier worker's frames under way as lost, network by network.
func (m *Manager) recoverCounters(all []*attachment) {
	networks := map[string][]*attachment{}
	for _, a := range all {
		if a.Engine == "" { // EMANE's radios do not stop with radiod
			networks[a.NetworkUID] = append(networks[a.NetworkUID], a)
		}
	}
	for _, attachments := range networks {
		ledgers := make([]*radio.Ledger, len(attachments))
		for i, a := range attachments {
			ledgers[i] = &a.counters.ledger
		}
		radio.RecoverLedgers(ledgers, func(i int) (radio.Traffic, error) { return m.trafficOf(attachments[i]) })
	}
}

// trafficOf returns an attachment's traffic as the kernel counted it.
func (m *Manager) trafficOf(a *attachment) (radio.Traffic, error) {
	state, err := m.stateOf(a)
	return state.Traffic, err
}

// stateOf returns the state of an attachment's interface.
func (m *Manager) stateOf(a *attachment) (state podnet.State, err error) {
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
func (m *Manager) rejoin(a *attachment, lost map[*attachment]error) error {
	defer m.lockPod(a.PodUID).Unlock()
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
		return m.removeFiles(a)
	}
	m.mu.Lock()
	m.missing[a.Key()] = &missing{attachment: a, err: err, next: time.Now().Add(firstRetry), pause: firstRetry}
	m.mu.Unlock()
	return a.restoreError(err)
}

func (a *attachment) restoreError(err error) error {
	return fmt.Errorf("restore %s of pod %s: %w", a.Interface, a.PodUID, err)
}

func idsOf(all []*attachment) (ids []string) {
	for _, a := range all {
		ids = append(ids, a.ID())
	}
	return ids
}

// removeFiles removes the files of an attachment without a descriptor.
func (m *Manager) removeFiles(a *attachment) error {
	return errors.Join(m.recordEnd(a), m.folder.Remove(attachmentFiles, a.ID()), m.folder.Remove(counterFiles, a.ID()))
}

// adopt restores the radio of a record in its pod's namespace, if it is still there.
func (m *Manager) adopt(a *attachment) error {
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
	*attachment
	err   error
	next  time.Time
	pause time.Duration
}

// String is its message in the RadioNetwork's status.
func (x *missing) String() string {
	return fmt.Sprintf("%s has no radio since radiod was restarted; it is tried again: %v", x.Member.Node, x.err)
}

// Retry tries again the attachments that Restore could not restore, when their time has come.
func (m *Manager) Retry(now time.Time) {
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

func (m *Manager) retry(x *missing, now time.Time) {
	defer m.lockPod(x.PodUID).Unlock()
	m.mu.Lock()
	replaced, member := m.attachments[x.Key()] != nil, m.members.Lists(x.NetworkUID, x.Key())
	m.mu.Unlock()
	var err error
	switch {
	case replaced: // its files belong to the new one
		m.clearMissing(x)
		return
	case !member:
		err = fmt.Errorf("%w: no RadioNetwork lists it any more", netns.ErrGone)
	case x.fd < 0:
		err = m.adopt(x.attachment)
	}
	if err == nil {
		err = m.join(x.attachment)
	}
	switch {
	case err == nil:
		m.clearMissing(x)
		m.Log.Info("restored a radio after a retry", "pod", x.PodUID, "interface", x.Interface)
		err = m.Recorder.Record(x.RunUID, []runapi.RadioGap{m.lossEndedGap(x)}, nil)
	case errors.Is(err, netns.ErrGone):
		m.clearMissing(x)
		err = m.removeFiles(x.attachment)
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

// clearMissing removes an attachment from the missing ones.
func (m *Manager) clearMissing(x *missing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missing, x.Key())
	if n := m.networks[x.NetworkUID]; n != nil {
		m.Changed(n.object)
	}
}

func (m *Manager) lossEndedGap(x *missing) runapi.RadioGap {
	now := clock.Realtime()
	return runapi.RadioGap{TimeNanoseconds: now, Gap: gapLost, Node: x.Member.Node, FromNanoseconds: m.lastWorkerSeen, ToNanoseconds: now,
		Reason: x.Interface + " could not be taken up at once after a restart of radiod"}
}
