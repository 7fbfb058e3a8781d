package provisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/runrecord"
	"vignette.dev/vignette/operators/experiment/scope"
)

func (p *Provisioner) ensureAttachments(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, want := range render.Attachments(s.RenderInput()) {
		existing := want.DeepCopy()
		err := p.Objects.Client.Get(ctx, client.ObjectKeyFromObject(want), existing)
		if apierrors.IsNotFound(err) {
			err = p.Objects.Create(ctx, want)
		}
		if apierrors.IsAlreadyExists(err) { // the cache is behind
			err = p.Objects.Live.Get(ctx, client.ObjectKeyFromObject(want), existing)
		}
		if err == nil && existing.UID != "" && !metav1.IsControlledBy(existing, s.Experiment) {
			return p.awaitName(ctx, s, existing, wanted{"NetworkAttachmentDefinition", "network", strings.TrimPrefix(want.Name, s.Experiment.Name+"-")})
		}
		if err != nil {
			return objects.HandleCreation(s, err, scope.ReasonPodRefused, "NetworkAttachmentDefinition "+want.Name+", which the pods need")
		}
	}
	return false, nil
}

// resolveServer looks up the server's address for pods and guests to come of nodes that have no nameserver.
func (p *Provisioner) resolveServer(ctx context.Context, s *scope.Scope) (bool, error) {
	name := render.ServerName(s.Options)
	if name == "" || !slices.ContainsFunc(s.Topology.Nodes, func(n topology.Node) bool {
		return !render.UsesClusterDNS(s.Options, n) && (n.IsVM() && !p.hasGuestFile(s.Pods[n.Name]) || !n.IsVM() && s.Pods[n.Name] == nil)
	}) {
		return false, nil
	}
	addresses, err := p.LookupHost(ctx, name)
	if err == nil && len(addresses) == 0 {
		err = errors.New("it has none")
	}
	if err != nil {
		s.Experiment.Status.Message = "resolving the server's address"
		return true, fmt.Errorf("address of %s: %w", name, err)
	}
	s.ServerAddress = addresses[0]
	return false, nil
}

// ensureBudget creates the budget of evictions before the first pod. One that exists must be its own, as the name has the UID.
func (p *Provisioner) ensureBudget(ctx context.Context, s *scope.Scope) (bool, error) {
	if len(s.Pods) > 0 {
		return false, nil
	}
	err := p.Objects.Create(ctx, render.Budget(s.Experiment, len(s.Topology.Nodes)))
	return objects.HandleCreation(s, client.IgnoreAlreadyExists(err), scope.ReasonPodRefused, "the PodDisruptionBudget of the nodes")
}

// ensurePods creates the missing pods with their scheduling gate.
func (p *Provisioner) ensurePods(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, want := range missingPods(s) {
		node := want.Labels[v1alpha1.LabelNode]
		err := p.Objects.Create(ctx, want)
		switch {
		case err == nil:
			s.Pods[node] = want
		case apierrors.IsAlreadyExists(err):
			if stop, err := p.adopt(ctx, s, want); stop || err != nil {
				return true, err
			}
		case objects.IsQuotaRefusal(err):
			s.Setback = &scope.Setback{Err: err}
			return true, nil
		case isAccountMissing(err):
			s.Experiment.Status.Message = "waiting for the namespace's service account"
			s.RequeueAfter(scope.PollInterval)
			return true, nil
		case objects.IsRefusal(err):
			s.Fail(scope.ReasonPodRefused, "the cluster refuses the pod of node %s: %v", node, err)
			return false, nil
		default:
			return true, err
		}
	}
	return false, nil
}

// missingPods are the pods of nodes that have none.
func missingPods(s *scope.Scope) []*corev1.Pod {
	if !slices.ContainsFunc(s.Topology.Nodes, func(n topology.Node) bool { return s.Pods[n.Name] == nil && !n.IsVM() }) {
		return nil
	}
	return slices.DeleteFunc(render.Pods(s.RenderInput()), func(p *corev1.Pod) bool { return s.Pods[p.Labels[v1alpha1.LabelNode]] != nil })
}

// adopt handles a pod that exists already. The operator has just created it and the cache is stale, or it is another's.
func (p *Provisioner) adopt(ctx context.Context, s *scope.Scope, want *corev1.Pod) (bool, error) {
	var existing corev1.Pod
	if err := p.Objects.Live.Get(ctx, client.ObjectKeyFromObject(want), &existing); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	if metav1.IsControlledBy(&existing, s.Experiment) {
		s.Pods[want.Labels[v1alpha1.LabelNode]] = &existing
		return false, nil
	}
	return p.awaitName(ctx, s, &existing, wanted{"pod", "node", want.Labels[v1alpha1.LabelNode]})
}

// isAccountMissing reports whether a new namespace does not have its default account yet.
func isAccountMissing(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")
}

// registerNodes sends the nodes with the UIDs of their pods to the server and radiod.
func (p *Provisioner) registerNodes(ctx context.Context, s *scope.Scope) (bool, error) {
	uids := map[string]types.UID{}
	for node, pod := range s.Pods {
		uids[node] = pod.UID
	}
	plan := render.Plan(s.RenderInput(), s.Waveforms, uids)
	var err error
	if plan.ConfigMaps, err = p.releasedConfigMaps(ctx, s); err != nil {
		return true, err
	}
	if err := p.Record.Put(ctx, plan, p.anyReleased(s.Pods)); err != nil {
		if full := runrecord.ArchiveFullMessage(err); full != "" {
			s.Fail(scope.ReasonArchiveFull, "the archive is full: %s", full)
			return false, nil
		}
		s.Experiment.Status.Message = "registering the nodes: " + runrecord.Waiting(err)
		return true, err
	}
	for _, want := range render.RadioNetworks(s.RenderInput(), s.Waveforms, uids) {
		var existing v1alpha1.RadioNetwork
		err := p.Objects.Client.Get(ctx, client.ObjectKeyFromObject(want), &existing)
		if apierrors.IsNotFound(err) && p.anyReleased(s.Pods) { // the cache may be behind
			if err = p.Objects.Live.Get(ctx, client.ObjectKeyFromObject(want), &existing); apierrors.IsNotFound(err) {
				s.Fail(scope.ReasonRadioNetworkDeleted, "RadioNetwork %s was deleted while its nodes started", want.Name)
				return false, nil
			}
		}
		want.Spec.Silent = existing.Spec.Silent // only administrators set it
		want.Spec.EMANE = existing.Spec.EMANE   // ensureEMANE sets it
		switch {
		case apierrors.IsNotFound(err):
			err = p.Objects.Client.Create(ctx, want)
		case err == nil && !equality.Semantic.DeepEqual(existing.Spec, want.Spec):
			before := existing.DeepCopy()
			existing.Spec = want.Spec
			err = p.Objects.Client.Patch(ctx, &existing, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		if apierrors.IsAlreadyExists(err) {
			s.RequeueAfter(scope.PollInterval)
			return true, nil
		}
		if err != nil {
			return objects.HandleCreation(s, err, scope.ReasonPodRefused, "RadioNetwork "+want.Name+" in namespace "+want.Namespace+", which network "+want.Spec.Network+" needs")
		}
	}
	return false, nil
}

// anyReleased reports whether a node may have started.
func (p *Provisioner) anyReleased(pods map[string]*corev1.Pod) bool {
	for _, pod := range pods {
		if len(pod.Spec.SchedulingGates) == 0 && (!render.IsLauncher(pod) || nodes.LauncherStarted(pod) || p.guests.hasSecret(pod.UID)) {
			return true
		}
	}
	return false
}

// releasePods removes the scheduling gate of every pod.
func (p *Provisioner) releasePods(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, name := range scope.SortedKeys(s.Pods) {
		pod := s.Pods[name]
		if len(pod.Spec.SchedulingGates) == 0 {
			continue
		}
		before := pod.DeepCopy()
		pod.Spec.SchedulingGates = slices.DeleteFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == v1alpha1.SchedulingGate })
		if err := p.Objects.Client.Patch(ctx, pod, client.MergeFrom(before)); err != nil {
			return true, err
		}
	}
	return false, nil
}
