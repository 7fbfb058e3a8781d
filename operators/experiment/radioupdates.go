package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/render"
)

// radioUpdates are pending changes of a running experiment's RadioNetworks, and status writes that follow them.
type radioUpdates struct {
	// current are the networks now, wanted those after the update.
	current, wanted []v1alpha1.RadioNetwork
	// onApplied runs once radios and server have the update.
	onApplied []func(context.Context) error
}

// planRadioUpdates computes the radios' update, which is T0, LiveChanges and captures, and adds it to the plan. Once the
// run is over, its captures end.
func (r *Reconciler) planRadioUpdates(ctx context.Context, s *scope, plan *runapi.Plan, over bool) (*radioUpdates, error) {
	known, err := r.radioNetworks(ctx, s)
	if err == nil && len(known) < len(s.experiment.Spec.Networks) { // the cache may be stale, and a change without its radio must not be planned
		known, err = r.uncached().radioNetworks(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	u := &radioUpdates{current: known, wanted: make([]v1alpha1.RadioNetwork, len(known))}
	for i := range known {
		u.wanted[i] = *known[i].DeepCopy()
		u.wanted[i].Spec.T0 = s.experiment.Status.T0
		if over {
			u.wanted[i].Spec.Captures = nil
		}
	}
	if over {
		r.endCaptures(s, u)
	}
	if over || !s.isRunning() {
		return u, nil
	}
	if err := r.addLiveChanges(ctx, s, u, plan); err != nil {
		return nil, err
	}
	r.setCaptures(s, u, plan)
	return u, nil
}

// endCaptures sets the end of all active captures, once the radios have the update.
func (r *Reconciler) endCaptures(s *scope, u *radioUpdates) {
	for _, c := range s.live.captures {
		if c.Status.StartedAt != nil && c.Status.EndedAt == nil {
			u.afterApplied(func(ctx context.Context) error { return r.writeCaptureStatus(ctx, c, s.runOver()) })
		}
	}
}

func (u *radioUpdates) network(name string) *v1alpha1.RadioNetworkSpec {
	for i := range u.wanted {
		if u.wanted[i].Spec.Network == name {
			return &u.wanted[i].Spec
		}
	}
	return nil
}

func (u *radioUpdates) afterApplied(do func(context.Context) error) {
	u.onApplied = append(u.onApplied, do)
}

// addLiveChanges sets the effective time of each new LiveChange and adds it to its networks' changes.
func (r *Reconciler) addLiveChanges(ctx context.Context, s *scope, u *radioUpdates, plan *runapi.Plan) error {
	for _, c := range s.live.changes {
		if isApplied(c) || !c.DeletionTimestamp.IsZero() || s.checkChange(c).reason != "" {
			continue
		}
		appliesAt := r.effectiveTime(s, u, c)
		at := appliesAt.Sub(s.experiment.Status.T0.Time)
		if !u.addChange(c, at) {
			v := liveOutcome{metav1.ConditionFalse, ReasonTooLarge, "this experiment has so many changes that a network has no room for more"}
			u.afterApplied(func(ctx context.Context) error { return r.writeChangeStatus(ctx, c, v) })
			continue
		}
		if err := r.writeEffectiveTime(ctx, c, appliesAt); err != nil {
			return err
		}
		plan.LiveChanges = insertChange(plan.LiveChanges, runapi.PlannedLiveChange{Name: c.Name, AtNanoseconds: int64(at), Changes: c.Spec.Changes})
		v := liveOutcome{metav1.ConditionTrue, ReasonApplied, fmt.Sprintf("applies from %s after T0", at)}
		u.afterApplied(func(ctx context.Context) error { return r.writeChangeStatus(ctx, c, v) })
	}
	return nil
}

// effectiveTime is the time from which a change applies. If it has passed before any radio had the change, because the
// operator was away, there is a new one, so that the record has the true time.
func (r *Reconciler) effectiveTime(s *scope, u *radioUpdates, c *v1alpha1.LiveChange) metav1.MicroTime {
	now := r.Clock.Now()
	if set := c.Status.AppliesAt; set != nil && (set.After(now) || u.hasLiveChange(c, set.Sub(s.experiment.Status.T0.Time))) {
		return *set
	}
	return metav1.NewMicroTime(now.Add(r.Options.ChangeLead).Truncate(time.Microsecond))
}

// writeEffectiveTime writes the time before any radio gets the change.
func (r *Reconciler) writeEffectiveTime(ctx context.Context, c *v1alpha1.LiveChange, appliesAt metav1.MicroTime) error {
	before := c.DeepCopy()
	c.Status.AppliesAt = &appliesAt
	return r.patchStatus(ctx, before, c)
}

// hasLiveChange reports whether any radio network has the change at that time already.
func (u *radioUpdates) hasLiveChange(c *v1alpha1.LiveChange, at time.Duration) bool {
	return slices.ContainsFunc(c.Spec.Changes, func(change v1alpha1.RadioChange) bool {
		network := u.network(change.Network)
		return network != nil && hasChange(network, change, at)
	})
}

func hasChange(network *v1alpha1.RadioNetworkSpec, change v1alpha1.RadioChange, at time.Duration) bool {
	want := v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: change}
	return slices.ContainsFunc(network.Changes, func(has v1alpha1.TimedRadioChange) bool { return equality.Semantic.DeepEqual(has, want) })
}

// addChange adds a change to those of its networks that do not have it. It returns false if one of them has no room.
func (u *radioUpdates) addChange(c *v1alpha1.LiveChange, at time.Duration) bool {
	more := map[string][]v1alpha1.TimedRadioChange{}
	for _, change := range c.Spec.Changes {
		if network := u.network(change.Network); network != nil && !hasChange(network, change, at) {
			more[change.Network] = append(more[change.Network], v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: change})
		}
	}
	for name, changes := range more {
		wider := *u.network(name)
		if wider.Changes = render.AddChanges(wider.Changes, changes...); !render.Fits(&wider) {
			return false
		}
	}
	for name, changes := range more {
		network := u.network(name)
		network.Changes = render.AddChanges(network.Changes, changes...)
	}
	return true
}

// insertChange adds a change to the planned ones, in order of time.
func insertChange(planned []runapi.PlannedLiveChange, change runapi.PlannedLiveChange) []runapi.PlannedLiveChange {
	same := func(p runapi.PlannedLiveChange) bool {
		return p.Name == change.Name && p.AtNanoseconds == change.AtNanoseconds
	}
	if slices.ContainsFunc(planned, same) {
		return planned
	}
	planned = append(slices.Clone(planned), change)
	slices.SortStableFunc(planned, func(a, b runapi.PlannedLiveChange) int { return cmp.Compare(a.AtNanoseconds, b.AtNanoseconds) })
	return planned
}

// setCaptures gives each network its active captures: that of the spec, and those of Captures that have not ended.
func (r *Reconciler) setCaptures(s *scope, u *radioUpdates, plan *runapi.Plan) {
	var active []runapi.PlannedCapture
	for i := range u.wanted {
		spec := &u.wanted[i].Spec
		spec.Captures = slices.DeleteFunc(spec.Captures, func(c v1alpha1.RadioCapture) bool { return c.Name != render.RunCapture })
	}
	for _, c := range s.live.captures {
		if !c.DeletionTimestamp.IsZero() || c.Status.EndedAt != nil || s.checkCapture(c).reason != "" {
			continue
		}
		if planned, isActive := r.addCapture(s, u, plan, c); isActive {
			active = append(active, planned)
		}
	}
	plan.Captures = slices.Clone(plan.Captures)
	for i, planned := range plan.Captures {
		plan.Captures[i].Ended = planned.Ended || planned.Name != render.RunCapture && !slices.ContainsFunc(active, sameFiles(planned))
	}
	for _, planned := range active {
		if !slices.ContainsFunc(plan.Captures, sameFiles(planned)) {
			plan.Captures = append(plan.Captures, planned)
		}
	}
}

// sameFiles matches captures of one name and network, which would be archived as the same files.
func sameFiles(a runapi.PlannedCapture) func(runapi.PlannedCapture) bool {
	return func(b runapi.PlannedCapture) bool { return a.Name == b.Name && a.Network == b.Network }
}

// addCapture adds one Capture to its network, and reports whether it is active.
func (r *Reconciler) addCapture(s *scope, u *radioUpdates, plan *runapi.Plan, c *v1alpha1.Capture) (planned runapi.PlannedCapture, isActive bool) {
	end := func(reason, message string) {
		u.afterApplied(func(ctx context.Context) error {
			return r.writeCaptureStatus(ctx, c, liveOutcome{metav1.ConditionFalse, reason, message})
		})
	}
	network := u.network(c.Spec.Network)
	if network == nil { // somebody deleted the RadioNetwork
		return planned, false
	}
	capture := render.Capture(s.topology, c)
	planned = render.PlanCaptures(s.topology, c.Spec.Network, capture)[0]
	if i := slices.IndexFunc(plan.Captures, sameFiles(planned)); i >= 0 && c.Status.StartedAt == nil && !equality.Semantic.DeepEqual(plan.Captures[i], planned) {
		end(ReasonNameUsed, fmt.Sprintf("the archive of this run already has a capture %s of network %s: use another name", c.Name, c.Spec.Network))
		return planned, false
	}
	if c.Status.StartedAt != nil && c.Spec.Duration != "" {
		left := c.Spec.Duration.Std() - s.now.Sub(c.Status.StartedAt.Time)
		if left <= 0 {
			end(ReasonDurationOver, fmt.Sprintf("captured for %s", c.Spec.Duration))
			return planned, false
		}
		s.requeueAfter(left)
	}
	wider := *network
	if wider.Captures = append(slices.Clone(wider.Captures), capture); !render.Fits(&wider) {
		end(ReasonTooLarge, "the network has no room for more captures: delete others")
		return planned, false
	}
	*network = wider
	if c.Status.StartedAt == nil {
		v := liveOutcome{metav1.ConditionTrue, ReasonCapturing, "frames of network " + c.Spec.Network + " are being captured"}
		u.afterApplied(func(ctx context.Context) error { return r.writeCaptureStatus(ctx, c, v) })
		if c.Spec.Duration != "" {
			s.requeueAfter(c.Spec.Duration.Std())
		}
	}
	return planned, true
}

// applyRadioUpdates writes the changed networks. Without the lock a stale read could remove a change.
func (r *Reconciler) applyRadioUpdates(ctx context.Context, u *radioUpdates) error {
	for i := range u.current {
		before, after := &u.current[i], &u.wanted[i]
		if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
			continue
		}
		if err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	return nil
}

// writeLiveStatuses writes the status of the changes and captures of an applied update.
func (u *radioUpdates) writeLiveStatuses(ctx context.Context) error {
	for _, write := range u.onApplied {
		if err := write(ctx); err != nil {
			return err
		}
	}
	return nil
}
