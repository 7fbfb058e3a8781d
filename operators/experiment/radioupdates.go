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

// radioUpdates is what the radios of a running experiment are to be told, and what people are told of it after that.
type radioUpdates struct {
	// current are the networks as they are, networks as they are to be.
	current, wanted []v1alpha1.RadioNetwork
	// onApplied follows once radios and server know.
	onApplied []func(context.Context) error
}

// planRadioUpdates works out what the radios have to be told now: T0, changes made by hand, captures. It completes
// the plan by it. Once the run is over, its captures end.
func (r *Reconciler) planRadioUpdates(ctx context.Context, s *scope, plan *runapi.Plan, over bool) (*radioUpdates, error) {
	known, err := r.radioNetworks(ctx, s)
	if err == nil && len(known) < len(s.experiment.Spec.Networks) { // the cache may be behind, and what no radio hears of must not be planned
		known, err = r.uncached().radioNetworks(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	st := &radioUpdates{current: known, wanted: make([]v1alpha1.RadioNetwork, len(known))}
	for i := range known {
		st.wanted[i] = *known[i].DeepCopy()
		st.wanted[i].Spec.T0 = s.experiment.Status.T0
		if over {
			st.wanted[i].Spec.Captures = nil
		}
	}
	if over {
		r.endCaptures(s, st)
	}
	if over || !s.isRunning() {
		return st, nil
	}
	if err := r.addLiveChanges(ctx, s, st, plan); err != nil {
		return nil, err
	}
	r.setCaptures(s, st, plan)
	return st, nil
}

// endCaptures notes the end of all that are under way, once the radios have been told.
func (r *Reconciler) endCaptures(s *scope, st *radioUpdates) {
	for _, c := range s.live.captures {
		if c.Status.StartedAt != nil && c.Status.EndedAt == nil {
			st.afterApplied(func(ctx context.Context) error { return r.writeCaptureStatus(ctx, c, s.runOver()) })
		}
	}
}

func (st *radioUpdates) network(name string) *v1alpha1.RadioNetworkSpec {
	for i := range st.wanted {
		if st.wanted[i].Spec.Network == name {
			return &st.wanted[i].Spec
		}
	}
	return nil
}

func (st *radioUpdates) afterApplied(do func(context.Context) error) {
	st.onApplied = append(st.onApplied, do)
}

// addLiveChanges gives every LiveChange its moment, once, and folds it into its networks' changes.
func (r *Reconciler) addLiveChanges(ctx context.Context, s *scope, st *radioUpdates, plan *runapi.Plan) error {
	for _, c := range s.live.changes {
		if isApplied(c) || !c.DeletionTimestamp.IsZero() || s.checkChange(c).reason != "" {
			continue
		}
		moment := r.effectiveTime(s, st, c)
		at := moment.Sub(s.experiment.Status.T0.Time)
		if !st.addChange(c, at) {
			v := liveOutcome{metav1.ConditionFalse, ReasonTooLarge, "so many changes were made to this experiment that a network has no room for more"}
			st.afterApplied(func(ctx context.Context) error { return r.writeChangeStatus(ctx, c, v) })
			continue
		}
		if err := r.writeEffectiveTime(ctx, c, moment); err != nil {
			return err
		}
		plan.LiveChanges = insertChange(plan.LiveChanges, runapi.PlannedLiveChange{Name: c.Name, AtNanoseconds: int64(at), Changes: c.Spec.Changes})
		v := liveOutcome{metav1.ConditionTrue, ReasonApplied, fmt.Sprintf("holds from %s after T0", at)}
		st.afterApplied(func(ctx context.Context) error { return r.writeChangeStatus(ctx, c, v) })
	}
	return nil
}

// effectiveTime from which a change holds. One that passed before any radio heard of it, as the operator was away,
// is replaced: what is on record is when the change held.
func (r *Reconciler) effectiveTime(s *scope, st *radioUpdates, c *v1alpha1.LiveChange) metav1.MicroTime {
	now := r.Clock.Now()
	if set := c.Status.AppliesAt; set != nil && (set.After(now) || st.hasLiveChange(c, set.Sub(s.experiment.Status.T0.Time))) {
		return *set
	}
	return metav1.NewMicroTime(now.Add(r.Options.ChangeLead).Truncate(time.Microsecond))
}

// writeEffectiveTime writes the moment before anybody acts on it.
func (r *Reconciler) writeEffectiveTime(ctx context.Context, c *v1alpha1.LiveChange, moment metav1.MicroTime) error {
	before := c.DeepCopy()
	c.Status.AppliesAt = &moment
	return r.patchStatus(ctx, before, c)
}

// hasLiveChange tells whether any radio network has a change at that moment already.
func (st *radioUpdates) hasLiveChange(c *v1alpha1.LiveChange, at time.Duration) bool {
	return slices.ContainsFunc(c.Spec.Changes, func(change v1alpha1.RadioChange) bool {
		network := st.network(change.Network)
		return network != nil && hasChange(network, change, at)
	})
}

func hasChange(network *v1alpha1.RadioNetworkSpec, change v1alpha1.RadioChange, at time.Duration) bool {
	want := v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: change}
	return slices.ContainsFunc(network.Changes, func(has v1alpha1.TimedRadioChange) bool { return equality.Semantic.DeepEqual(has, want) })
}

// addChange a change to its networks, where they have not got it; false where one of them has no room.
func (st *radioUpdates) addChange(c *v1alpha1.LiveChange, at time.Duration) bool {
	more := map[string][]v1alpha1.TimedRadioChange{}
	for _, change := range c.Spec.Changes {
		if network := st.network(change.Network); network != nil && !hasChange(network, change, at) {
			more[change.Network] = append(more[change.Network], v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: change})
		}
	}
	for name, changes := range more {
		wider := *st.network(name)
		if wider.Changes = render.AddChanges(wider.Changes, changes...); !render.Fits(&wider) {
			return false
		}
	}
	for name, changes := range more {
		network := st.network(name)
		network.Changes = render.AddChanges(network.Changes, changes...)
	}
	return true
}

// insertChange adds a change to those on record, in order of time.
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

// setCaptures leaves each network the captures that are under way: that of the spec, and those of Captures
// that are there, have not been ended and are not over.
func (r *Reconciler) setCaptures(s *scope, st *radioUpdates, plan *runapi.Plan) {
	var under []runapi.PlannedCapture
	for i := range st.wanted {
		spec := &st.wanted[i].Spec
		spec.Captures = slices.DeleteFunc(spec.Captures, func(c v1alpha1.RadioCapture) bool { return c.Name != render.RunCapture })
	}
	for _, c := range s.live.captures {
		if !c.DeletionTimestamp.IsZero() || c.Status.EndedAt != nil || s.checkCapture(c).reason != "" {
			continue
		}
		if planned, captures := r.addCapture(s, st, plan, c); captures {
			under = append(under, planned)
		}
	}
	plan.Captures = slices.Clone(plan.Captures)
	for i, planned := range plan.Captures {
		plan.Captures[i].Ended = planned.Ended || planned.Name != render.RunCapture && !slices.ContainsFunc(under, sameFiles(planned))
	}
	for _, planned := range under {
		if !slices.ContainsFunc(plan.Captures, sameFiles(planned)) {
			plan.Captures = append(plan.Captures, planned)
		}
	}
}

// sameFiles tells captures of one name and network, which would be archived as the same files.
func sameFiles(a runapi.PlannedCapture) func(runapi.PlannedCapture) bool {
	return func(b runapi.PlannedCapture) bool { return a.Name == b.Name && a.Network == b.Network }
}

// addCapture puts one Capture among those of its network, and tells whether it is under way.
func (r *Reconciler) addCapture(s *scope, st *radioUpdates, plan *runapi.Plan, c *v1alpha1.Capture) (planned runapi.PlannedCapture, captures bool) {
	end := func(reason, message string) {
		st.afterApplied(func(ctx context.Context) error {
			return r.writeCaptureStatus(ctx, c, liveOutcome{metav1.ConditionFalse, reason, message})
		})
	}
	network := st.network(c.Spec.Network)
	if network == nil { // somebody deleted the RadioNetwork
		return planned, false
	}
	capture := render.Capture(s.topology, c)
	planned = render.PlanCaptures(s.topology, c.Spec.Network, capture)[0]
	if i := slices.IndexFunc(plan.Captures, sameFiles(planned)); i >= 0 && c.Status.StartedAt == nil && !equality.Semantic.DeepEqual(plan.Captures[i], planned) {
		end(ReasonNameUsed, fmt.Sprintf("the archive of this run has a capture %s of network %s already: take another name", c.Name, c.Spec.Network))
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
		st.afterApplied(func(ctx context.Context) error { return r.writeCaptureStatus(ctx, c, v) })
		if c.Spec.Duration != "" {
			s.requeueAfter(c.Spec.Duration.Std())
		}
	}
	return planned, true
}

// applyRadioUpdates what is new to them. The lock keeps a stale read from taking back a change that they know.
func (r *Reconciler) applyRadioUpdates(ctx context.Context, st *radioUpdates) error {
	for i := range st.current {
		before, after := &st.current[i], &st.wanted[i]
		if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
			continue
		}
		if err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	return nil
}

// writeLiveStatuses what has become of their changes and captures.
func (st *radioUpdates) writeLiveStatuses(ctx context.Context) error {
	for _, tell := range st.onApplied {
		if err := tell(ctx); err != nil {
			return err
		}
	}
	return nil
}
