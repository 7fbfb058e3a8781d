package experiment

import (
	"time"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/admission"
	"vignette.dev/vignette/operators/experiment/admission/references"
	"vignette.dev/vignette/operators/experiment/cleanup"
	"vignette.dev/vignette/operators/experiment/collection"
	"vignette.dev/vignette/operators/experiment/kueue"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/provisioning"
	"vignette.dev/vignette/operators/experiment/provisioning/emane"
	"vignette.dev/vignette/operators/experiment/provisioning/secrets"
	"vignette.dev/vignette/operators/experiment/run"
	"vignette.dev/vignette/operators/experiment/run/argo"
	"vignette.dev/vignette/operators/experiment/run/live"
	"vignette.dev/vignette/operators/experiment/runrecord"
	"vignette.dev/vignette/operators/experiment/scope"
	"vignette.dev/vignette/operators/experiment/updates"
	"vignette.dev/vignette/operators/experiment/wakeup"
)

// duties are the parts of the controller. Admission, provisioning, run, collection and clean-up do not know each other: what
// they share is in the scope, in the cluster and in packages below them, such as run/argo.
type duties struct {
	objects     *objects.Objects
	workloads   *kueue.Workloads
	references  *references.Resolver
	admitter    *admission.Admitter
	provisioner *provisioning.Provisioner
	live        *live.Live
	runner      *run.Runner
	collector   *collection.Collector
	cleaner     *cleanup.Cleaner
	// updates is nil if each experiment polls the server.
	updates *updates.Feed
	// wakeups are requests for reconciliations.
	wakeups wakeup.Channel
}

// maxWakeups is how many requests wait for the controller.
const maxWakeups = 400

// parts are the controller's duties.
func (r *Reconciler) parts() *duties {
	r.assemble.Do(func() {
		d, o := &r.duties, r.Options
		d.wakeups = make(wakeup.Channel, maxWakeups)
		if r.RunUpdates != nil {
			d.updates = updates.New(r.RunUpdates, r.Clock.Now)
		}
		d.objects = &objects.Objects{Client: r.Client, Live: r.Live, Namespace: o.Render.Namespace}
		d.workloads = &kueue.Workloads{Objects: d.objects}
		workflows := &argo.Workflows{Client: r.Client, Live: r.Live, ProvisioningDeadline: o.ProvisioningDeadline}
		runRecord := &runrecord.Record{Runs: r.Runs, Objects: d.objects, Version: o.Version, KubernetesVersion: r.KubernetesVersion}
		d.references = &references.Resolver{Client: r.Client, Live: r.Live, Workloads: d.workloads, Clock: r.Clock,
			Scenarios: r.Scenarios, Namespace: o.Render.Namespace, ClusterCIDRs: o.ClusterCIDRs}
		d.admitter = &admission.Admitter{Objects: d.objects, References: d.references, Workloads: d.workloads, Queue: &admission.Queue{
			Client: r.Client, Live: r.Live, Clock: r.Clock, Render: o.Render, StartLead: o.StartLead,
			Templates: d.references.CachedTemplates, Written: &r.written, Wakeups: d.wakeups}}
		d.provisioner = &provisioning.Provisioner{Objects: d.objects, Record: runRecord, Workflows: workflows,
			EMANE: &emane.Pods{Objects: d.objects, Scenarios: r.Scenarios}, Secrets: &secrets.Secrets{Objects: d.objects},
			Updates: d.updates, Console: r.Console, LookupHost: o.LookupHost, Deadline: o.ProvisioningDeadline, Wakeups: d.wakeups}
		d.live = &live.Live{Objects: d.objects, Clock: r.Clock, ChangeLead: o.ChangeLead}
		d.runner = &run.Runner{Workflows: workflows, Objects: d.objects, Record: runRecord, Live: d.live, Updates: d.updates,
			Console: r.Console, Clock: r.Clock, StartLead: o.StartLead}
		d.collector = &collection.Collector{Workflows: workflows, Record: runRecord}
		d.cleaner = &cleanup.Cleaner{Objects: d.objects, Workloads: d.workloads, Runs: r.Runs, Deadline: o.CleanupDeadline}
	})
	return &r.duties
}

// ProvisioningDeadline is the time from its start slot in which an accepted experiment must become ready.
func (r *Reconciler) ProvisioningDeadline(e *v1alpha1.Experiment) time.Duration {
	d := r.parts()
	templates, _ := d.references.CachedTemplates(e)
	return d.provisioner.DeadlineOf(render.Input{Experiment: e, Templates: templates}, int(e.Status.Nodes.Total))
}

// stages of a reconciliation, in order.
func (d *duties) stages(s *scope.Scope) []stage {
	if !s.Experiment.DeletionTimestamp.IsZero() {
		return []stage{d.cleaner.Finalize}
	}
	return []stage{
		d.references.Compile, d.live.Sync, d.cleaner.DeleteLeftovers, d.references.Resolve,
		d.admitter.Accept, d.admitter.Admit, d.admitter.CheckEviction,
		d.provisioner.Provision, d.admitter.TakeBack,
		d.runner.Drive,
		d.collector.Collect, d.collector.ArchiveLogs,
		d.cleaner.DeleteFinished, d.cleaner.DeleteExpired,
	}
}

// forget what the duties remember of an experiment that is past them.
func (d *duties) forget(s *scope.Scope) {
	uid, deleted := s.Experiment.UID, !s.Experiment.DeletionTimestamp.IsZero()
	d.admitter.Forget(s)
	if s.Phase() != v1alpha1.PhaseProvisioning || s.Failure() != nil || deleted {
		d.provisioner.FreeSlot(uid)
	}
	if s.Phase() != v1alpha1.PhaseRunning || deleted {
		d.runner.Forget(uid)
	}
}
