package provisioning

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/checks"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/experiment/nodes"
	"vignette.dev/vignette/operators/experiment/objects"
	"vignette.dev/vignette/operators/experiment/scope"
)

const (
	// liveTokenLifetime is the lifetime of a guest's token in a live cluster. In a run it is the run's time plus tokenMargin.
	liveTokenLifetime, tokenMargin = 7 * 24 * time.Hour, 2 * time.Hour
	// minTokenLifetime is the API server's minimum.
	minTokenLifetime = 10 * time.Minute
	// maxGuests limits the guests whose Secrets are remembered.
	maxGuests = 10_000
)

// guestTracker remembers for which launchers the Secret was created, because the operator must not read Secrets. After a
// restart each is created once more.
type guestTracker struct {
	once        sync.Once
	secretsMade *lru.Cache
}

func (g *guestTracker) secretCache() *lru.Cache {
	g.once.Do(func() { g.secretsMade = lru.New(maxGuests) })
	return g.secretsMade
}

func (g *guestTracker) hasSecret(launcher types.UID) bool {
	_, found := g.secretCache().Get(launcher)
	return found
}

func (g *guestTracker) noteSecret(launcher types.UID) { g.secretCache().Add(launcher, true) }

// ensureVMs creates the missing virtual machines and waits for KubeVirt's launcher of each, whose UID the radio network
// needs.
func (p *Provisioner) ensureVMs(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.UsesVMs() {
		return false, nil
	}
	for _, want := range render.VMs(s.RenderInput(), s.Now, func(n topology.Node) bool { return s.VMs[n.Name] == nil }) {
		if stop, err := p.createVM(ctx, s, want); stop || err != nil || s.JustFailed {
			return true, err
		}
	}
	var waiting []string
	for _, node := range render.VMNodes(s.Topology) {
		if s.Pods[node.Name] == nil {
			waiting = append(waiting, node.Name)
		}
	}
	if len(waiting) == 0 {
		return false, nil
	}
	s.Experiment.Status.Message = "waiting for KubeVirt to create the pods of " + scope.SomeOf(waiting, "virtual machines")
	s.RequeueAfter(scope.PollInterval)
	return true, nil
}

func (p *Provisioner) createVM(ctx context.Context, s *scope.Scope, want *kubevirtv1.VirtualMachineInstance) (stop bool, err error) {
	node := want.Labels[v1alpha1.LabelNode]
	made, err := objects.UnstructuredVM(want)
	if err != nil {
		return true, err
	}
	unstructured.RemoveNestedField(made.Object, "status")
	switch err := p.Objects.Client.Create(ctx, made); {
	case err == nil:
		s.VMs[node] = want
		want.UID = made.GetUID()
	case apierrors.IsAlreadyExists(err):
		existing := &unstructured.Unstructured{}
		existing.SetGroupVersionKind(kubevirtv1.VirtualMachineInstanceGroupVersionKind)
		if err := p.Objects.Live.Get(ctx, client.ObjectKeyFromObject(want), existing); err != nil {
			return true, client.IgnoreNotFound(err)
		}
		return p.awaitName(ctx, s, existing, wanted{"VirtualMachineInstance", "node", node})
	case objects.IsQuotaRefusal(err):
		s.Setback = &scope.Setback{Err: err}
		return true, nil
	case meta.IsNoMatchError(err):
		s.Fail(scope.ReasonKubeVirtMissing, "node %s is a virtual machine, and KubeVirt is not installed in this cluster any more", node)
	case objects.IsRefusal(err):
		s.Fail(scope.ReasonPodRefused, "the cluster refuses the virtual machine of node %s: %v", node, err)
	default:
		return true, err
	}
	return false, nil
}

// hasGuestFile reports whether a launcher, nil for one to come, has the Secret with its guest's file.
func (p *Provisioner) hasGuestFile(launcher *corev1.Pod) bool {
	return launcher != nil && (nodes.LauncherStarted(launcher) || p.guests.hasSecret(launcher.UID))
}

// releaseVMs creates the Secrets without which the launchers do not start, once the server and radiod know their UIDs.
func (p *Provisioner) releaseVMs(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, node := range render.VMNodes(s.Topology) {
		launcher, vm := s.Pods[node.Name], s.VMs[node.Name]
		if p.hasGuestFile(launcher) {
			continue
		}
		secret, err := p.guestSecret(ctx, s, node, vm, launcher)
		if err != nil || s.JustFailed {
			return true, err
		}
		switch err := p.Objects.Create(ctx, secret); {
		case err == nil || apierrors.IsAlreadyExists(err): // no other machine has a Secret of this name
			p.guests.noteSecret(launcher.UID)
		case objects.IsQuotaRefusal(err):
			s.Setback = &scope.Setback{Err: err}
			return true, nil
		case objects.IsRefusal(err):
			s.Fail(scope.ReasonSecretRefused, "the cluster refuses the Secret for the guest of node %s: %v", node.Name, err)
			return true, nil
		default:
			return true, err
		}
	}
	return false, nil
}

// guestSecret has a token for the server, bound to the launcher's pod. The guest authenticates as that pod.
func (p *Provisioner) guestSecret(ctx context.Context, s *scope.Scope, node topology.Node, vm *kubevirtv1.VirtualMachineInstance, launcher *corev1.Pod) (*corev1.Secret, error) {
	file, err := render.GuestFile(s.RenderInput(), node, s.Waveforms)
	if err != nil {
		s.Fail(checks.ReasonInvalid, "%v", err)
		return nil, nil
	}
	if !node.HasAgent() { // only agents connect to the server
		return render.GuestSecret(s.RenderInput(), vm, node, file, ""), nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: "default"}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{v1alpha1.TokenAudience}, ExpirationSeconds: ptr.To(int64(tokenLifetime(s).Seconds())),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: launcher.Name, UID: launcher.UID},
	}}
	if err := p.Objects.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("token for the guest of node %s: %w", node.Name, err)
	}
	if checkTokenEnd(s, request.Status.ExpirationTimestamp.Time); s.JustFailed {
		return nil, nil
	}
	return render.GuestSecret(s.RenderInput(), vm, node, file, request.Status.Token), nil
}

// checkTokenEnd fails a run that lasts longer than the guests' tokens, and names the end of a live cluster's tokens:
// an API server may grant less than what was asked for.
func checkTokenEnd(s *scope.Scope, end time.Time) {
	granted := end.Sub(s.Now)
	if s.Timeline.Live() {
		s.WarnOnce(scope.ReasonGuestTokenEnds, "virtual machines lose the server on %s: the cluster gives them tokens for %s, which are not renewed. "+
			"What they log later is not archived: stop the experiment before, or make it again", end.UTC().Format("2006-01-02 15:04 MST"), granted.Round(time.Hour))
		return
	}
	needed := s.Timeline.End(nil) + s.Experiment.Spec.Drain.Max.Std() + minTokenLifetime
	if granted < needed {
		s.Fail(scope.ReasonGuestTokenEnds, "the run needs %s with its start and its drain, and the cluster gives virtual machines tokens for %s only: make the run "+
			"shorter, or have the administrator raise the API server's service-account-max-token-expiration", needed.Round(time.Minute), granted.Round(time.Minute))
	}
}

// tokenLifetime is the lifetime of a guest's token, which must last for the run because the token on its disk is never
// renewed.
func tokenLifetime(s *scope.Scope) time.Duration {
	if s.Timeline.Live() {
		return liveTokenLifetime
	}
	end := s.Timeline.End(nil)
	return max(end+end/10+s.Experiment.Spec.Drain.Max.Std()+tokenMargin, minTokenLifetime)
}

// checkVMQuota puts the experiment back into the queue if a quota refuses a launcher.
func (p *Provisioner) checkVMQuota(_ context.Context, s *scope.Scope) (bool, error) {
	for _, node := range scope.SortedKeys(s.VMs) {
		refused := nodes.LauncherRefusal(s.VMs[node])
		if s.Pods[node] == nil && strings.Contains(refused, "exceeded quota") {
			s.Setback = &scope.Setback{Err: fmt.Errorf("node %s: %s", node, refused)}
			return true, nil
		}
	}
	return false, nil
}

// unreportedGuest describes the first virtual machine whose agent has not reported, with the end of its console.
func (p *Provisioner) unreportedGuest(ctx context.Context, s *scope.Scope) string {
	state, err := p.Record.State(ctx, string(s.Experiment.UID))
	if err != nil {
		return ""
	}
	reported := map[string]bool{}
	for _, agent := range state.Agents {
		reported[agent.Node] = true
	}
	for _, node := range render.VMNodes(s.Topology) {
		if launcher := s.Pods[node.Name]; launcher != nil && nodes.LauncherStarted(launcher) && node.HasAgent() && !reported[node.Name] {
			return "; node " + node.Name + " has not reported" + p.Console.Tail(ctx, s, node.Name)
		}
	}
	return ""
}
