package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Updates are pending changes of a running experiment's RadioNetworks, and status writes that follow them.
type Updates struct {
	// current are the networks now, wanted those after the update.
	current, wanted []v1alpha1.RadioNetwork
	// onApplied runs once radios and server have the update.
	onApplied []func(context.Context) error
}

// Plan computes the radios' update, which is T0, LiveChanges and captures, and adds it to the plan. Once the
// run is over, its captures end.
func (l *Live) Plan(ctx context.Context, s *scope.Scope, plan *runapi.Plan, over bool) (*Updates, error) {
	known, err := l.Objects.RadioNetworks(ctx, s)
	if err == nil && len(known) < len(s.Experiment.Spec.Networks) { // the cache may be stale, and a change without its radio must not be planned
		known, err = l.Objects.Uncached().RadioNetworks(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	u := &Updates{current: known, wanted: make([]v1alpha1.RadioNetwork, len(known))}
	for i := range known {
		u.wanted[i] = *known[i].DeepCopy()
		u.wanted[i].Spec.T0 = s.Experiment.Status.T0
		if over {
			u.wanted[i].Spec.Captures = nil
		}
	}
	if over {
		l.endCaptures(s, u)
	}
	if over || !s.IsRunning() {
		return u, nil
	}
	if err := l.addLiveChanges(ctx, s, u, plan); err != nil {
		return nil, err
	}
	l.setCaptures(s, u, plan)
	return u, nil
}

// endCaptures sets the end of all active captures, once the radios have the update.
func (l *Live) endCaptures(s *scope.Scope, u *Updates) {
	for _, c := range s.Captures {
		if c.Status.StartedAt != nil && c.Status.EndedAt == nil {
			u.afterApplied(func(ctx context.Context) error { return l.writeCaptureStatus(ctx, c, runOver(s)) })
		}
	}
}

func (u *Updates) network(name string) *v1alpha1.RadioNetworkSpec {
	for i := range u.wanted {
		if u.wanted[i].Spec.Network == name {
			return &u.wanted[i].Spec
		}
	}
	return nil
}

func (u *Updates) afterApplied(do func(context.Context) error) {
	u.onApplied = append(u.onApplied, do)
}

// addLiveChanges sets the effective time of each new LiveChange and adds it to its networks' changes.
func (l *Live) addLiveChanges(ctx context.Context, s *scope.Scope, u *Updates, plan *runapi.Plan) error {
	for _, c := range s.LiveChanges {
		if isApplied(c) || !c.DeletionTimestamp.IsZero() || checkChange(s, c).reason != "" {
			continue
		}
		appliesAt := l.effectiveTime(s, u, c)
		at := appliesAt.Sub(s.Experiment.Status.T0.Time)
		if errs := misfits(c, at, u.network); len(errs) > 0 {
			v := invalid(errs)
			u.afterApplied(func(ctx context.Context) error { return l.writeChangeStatus(ctx, c, v) })
			continue
		}
		if !u.addChange(c, at) {
			v := outcome{metav1.ConditionFalse, scope.ReasonTooLarge, "this experiment has so many changes that a network has no room for more"}
			u.afterApplied(func(ctx context.Context) error { return l.writeChangeStatus(ctx, c, v) })
			continue
		}
		if err := l.writeEffectiveTime(ctx, c, appliesAt); err != nil {
			return err
		}
		plan.LiveChanges = insertChange(plan.LiveChanges, runapi.PlannedLiveChange{Name: c.Name, AtNanoseconds: int64(at), Changes: c.Spec.Changes})
		v := outcome{metav1.ConditionTrue, scope.ReasonApplied, fmt.Sprintf("applies from %s after T0", at)}
		u.afterApplied(func(ctx context.Context) error { return l.writeChangeStatus(ctx, c, v) })
	}
	return nil
}

// effectiveTime is the time from which a change applies. If it has passed before any radio had the change, because the
// operator was away, there is a new one, so that the record has the true time.
func (l *Live) effectiveTime(s *scope.Scope, u *Updates, c *v1alpha1.LiveChange) metav1.MicroTime {
	now := l.Clock.Now()
	if set := c.Status.AppliesAt; set != nil && (set.After(now) || u.hasLiveChange(c, set.Sub(s.Experiment.Status.T0.Time))) {
		return *set
	}
	return metav1.NewMicroTime(now.Add(l.ChangeLead).Truncate(time.Microsecond))
}

// writeEffectiveTime writes the time before any radio gets the change.
func (l *Live) writeEffectiveTime(ctx context.Context, c *v1alpha1.LiveChange, appliesAt metav1.MicroTime) error {
	before := c.DeepCopy()
	c.Status.AppliesAt = &appliesAt
	return l.patchStatus(ctx, before, c)
}

// hasLiveChange reports whether any radio network has the change at that time already.
func (u *Updates) hasLiveChange(c *v1alpha1.LiveChange, at time.Duration) bool {
	return slices.ContainsFunc(c.Spec.Changes, func(change v1alpha1.RadioChange) bool {
		network := u.network(change.Network)
		return network != nil && HasChange(network, change, at)
	})
}

// HasChange reports whether a radio network has a change at a time after T0.
func HasChange(network *v1alpha1.RadioNetworkSpec, change v1alpha1.RadioChange, at time.Duration) bool {
	want := v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: change}
	return slices.ContainsFunc(network.Changes, func(has v1alpha1.TimedRadioChange) bool { return equality.Semantic.DeepEqual(has, want) })
}

// missingChanges are those of a change that its networks do not have yet, by network.
func missingChanges(c *v1alpha1.LiveChange, at time.Duration, of func(name string) *v1alpha1.RadioNetworkSpec) map[string][]v1alpha1.TimedRadioChange {
	more := map[string][]v1alpha1.TimedRadioChange{}
	for _, change := range c.Spec.Changes {
		if network := of(change.Network); network != nil && !HasChange(network, change, at) {
			more[change.Network] = append(more[change.Network], v1alpha1.TimedRadioChange{AtNanoseconds: int64(at), RadioChange: change})
		}
	}
	return more
}

// addChange adds a change to those of its networks that do not have it. It returns false if one of them has no room.
func (u *Updates) addChange(c *v1alpha1.LiveChange, at time.Duration) bool {
	more := missingChanges(c, at, u.network)
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
func (l *Live) setCaptures(s *scope.Scope, u *Updates, plan *runapi.Plan) {
	var active []runapi.PlannedCapture
	for i := range u.wanted {
		spec := &u.wanted[i].Spec
		spec.Captures = slices.DeleteFunc(spec.Captures, func(c v1alpha1.RadioCapture) bool { return c.Name != render.RunCapture })
	}
	for _, c := range s.Captures {
		if !c.DeletionTimestamp.IsZero() || c.Status.EndedAt != nil || checkCapture(s, c).reason != "" {
			continue
		}
		if planned, isActive := l.addCapture(s, u, plan, c); isActive {
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
func (l *Live) addCapture(s *scope.Scope, u *Updates, plan *runapi.Plan, c *v1alpha1.Capture) (planned runapi.PlannedCapture, isActive bool) {
	end := func(reason, message string) {
		u.afterApplied(func(ctx context.Context) error {
			return l.writeCaptureStatus(ctx, c, outcome{metav1.ConditionFalse, reason, message})
		})
	}
	network := u.network(c.Spec.Network)
	if network == nil { // somebody deleted the RadioNetwork
		return planned, false
	}
	capture := render.Capture(s.Topology, c)
	planned = render.PlanCaptures(s.Topology, c.Spec.Network, capture)[0]
	if i := slices.IndexFunc(plan.Captures, sameFiles(planned)); i >= 0 && c.Status.StartedAt == nil && !equality.Semantic.DeepEqual(plan.Captures[i], planned) {
		end(scope.ReasonNameUsed, fmt.Sprintf("the archive of this run already has a capture %s of network %s: use another name", c.Name, c.Spec.Network))
		return planned, false
	}
	if c.Status.StartedAt != nil && c.Spec.Duration != "" {
		left := c.Spec.Duration.Std() - s.Now.Sub(c.Status.StartedAt.Time)
		if left <= 0 {
			end(scope.ReasonDurationOver, fmt.Sprintf("captured for %s", c.Spec.Duration))
			return planned, false
		}
		s.RequeueAfter(left)
	}
	wider := *network
	if wider.Captures = append(slices.Clone(wider.Captures), capture); !render.Fits(&wider) {
		end(scope.ReasonTooLarge, "the network has no room for more captures: delete others")
		return planned, false
	}
	*network = wider
	if c.Status.StartedAt == nil {
		v := outcome{metav1.ConditionTrue, scope.ReasonCapturing, "frames of network " + c.Spec.Network + " are being captured"}
		u.afterApplied(func(ctx context.Context) error { return l.writeCaptureStatus(ctx, c, v) })
		if c.Spec.Duration != "" {
			s.RequeueAfter(c.Spec.Duration.Std())
		}
	}
	return planned, true
}

// Apply writes the changed networks. Without the lock a stale read could remove a change.
func (l *Live) Apply(ctx context.Context, u *Updates) error {
	for i := range u.current {
		before, after := &u.current[i], &u.wanted[i]
		if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
			continue
		}
		if err := l.Objects.Client.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	return nil
}

// WriteStatuses writes the status of the changes and captures of an applied update.
func (u *Updates) WriteStatuses(ctx context.Context) error {
	for _, write := range u.onApplied {
		if err := write(ctx); err != nil {
			return err
		}
	}
	return nil
}
