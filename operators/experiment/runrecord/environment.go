package runrecord

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/environment"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/experiment/run/argo"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Environment describes the hosts and images of the nodes, for the run record. Known entries stay, because pods that
// ended since show less.
func (r *Record) Environment(ctx context.Context, s *scope.Scope, known *runapi.Environment) (*runapi.Environment, error) {
	e := &runapi.Environment{}
	if known != nil {
		*e = runapi.Environment{Platform: known.Platform, Kubernetes: known.Kubernetes, Hosts: slices.Clone(known.Hosts), Images: slices.Clone(known.Images)}
	} else if err := r.describePlatform(ctx, e); err != nil {
		return nil, err
	}
	for node, pod := range s.Pods {
		if !slices.ContainsFunc(e.Images, func(i runapi.Image) bool { return i.Node == node }) && allStarted(pod) {
			e.Images = append(e.Images, environment.Containers(node, pod)...)
		}
	}
	if err := r.describeHosts(ctx, s, e); err != nil {
		return nil, err
	}
	e.Sort()
	return e, nil
}

// allStarted reports whether a pod's status has the image of every container.
func allStarted(pod *corev1.Pod) bool {
	statuses := pod.Status.ContainerStatuses
	return len(statuses) == len(pod.Spec.Containers) && !slices.ContainsFunc(statuses, func(c corev1.ContainerStatus) bool { return c.ImageID == "" })
}

// describePlatform asks the API server once in a run, because the operator does not cache the platform's pods.
func (r *Record) describePlatform(ctx context.Context, e *runapi.Environment) (err error) {
	var pods corev1.PodList
	if err := r.Objects.Live.List(ctx, &pods, client.InNamespace(r.Objects.Namespace), client.MatchingLabels(environment.PlatformLabels)); err != nil {
		return err
	}
	e.Platform, e.Images = environment.Platform(pods.Items)
	e.Platform.Operator = r.Version
	if r.KubernetesVersion != nil {
		e.Kubernetes, err = r.KubernetesVersion()
	}
	return err
}

// describeHosts adds new hosts of nodes, and what radiod has reported about them since.
func (r *Record) describeHosts(ctx context.Context, s *scope.Scope, e *runapi.Environment) error {
	for node, pod := range s.Pods {
		if err := r.addHost(ctx, e, node, pod.Spec.NodeName); err != nil {
			return err
		}
	}
	if !s.UsesEMANE() && !slices.ContainsFunc(e.Hosts, func(h runapi.Host) bool { return h.CPUModel == "" || h.TCPCongestionControl == "" }) {
		return nil
	}
	networks, err := r.Objects.RadioNetworks(ctx, s)
	if err != nil {
		return err
	}
	for i := range e.Hosts {
		for _, network := range networks {
			for _, reported := range network.Status.Hosts {
				if reported.Host == e.Hosts[i].Name {
					e.Hosts[i].CPUModel = cmp.Or(e.Hosts[i].CPUModel, reported.CPUModel)
					e.Hosts[i].TCPCongestionControl = cmp.Or(e.Hosts[i].TCPCongestionControl, reported.TCPCongestionControl)
				}
			}
		}
	}
	emane, err := r.Objects.EMANEPods(ctx, s, networks)
	for _, name := range scope.SortedKeys(emane) {
		if allStarted(emane[name]) {
			addEMANEImages(e, emane[name])
		}
	}
	return err
}

// addEMANEImages adds EMANE's image on each host.
func addEMANEImages(e *runapi.Environment, pod *corev1.Pod) {
	for _, image := range environment.Containers("", pod) {
		image.Host = pod.Spec.NodeName
		same := func(i runapi.Image) bool {
			return i.Node == "" && i.Container == image.Container && i.Host == image.Host
		}
		if !slices.ContainsFunc(e.Images, same) {
			e.Images = append(e.Images, image)
		}
	}
}

func (r *Record) addHost(ctx context.Context, e *runapi.Environment, node, name string) error {
	has := func(h runapi.Host) bool { return slices.Contains(h.Nodes, node) }
	if name == "" || slices.ContainsFunc(e.Hosts, has) {
		return nil
	}
	at := slices.IndexFunc(e.Hosts, func(h runapi.Host) bool { return h.Name == name })
	if at < 0 {
		host := runapi.Host{Name: name}
		var known corev1.Node
		err := r.Objects.Client.Get(ctx, client.ObjectKey{Name: name}, &known)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			host = environment.Host(&known)
		}
		at, e.Hosts = len(e.Hosts), append(e.Hosts, host)
	}
	e.Hosts[at].Nodes = append(slices.Clone(e.Hosts[at].Nodes), node)
	return nil
}

// StepImages adds the images of the workflow's pods that still exist.
func (r *Record) StepImages(ctx context.Context, s *scope.Scope, known *runapi.Environment) (*runapi.Environment, error) {
	var pods corev1.PodList
	if err := r.Objects.Live.List(ctx, &pods, client.InNamespace(s.Experiment.Namespace), client.MatchingLabels{render.LabelWorkflow: s.Experiment.Name}); err != nil {
		return known, err
	}
	e := runapi.Environment{}
	if known != nil {
		e = *known
		e.Images = slices.Clone(known.Images)
	}
	for i := range pods.Items {
		name := argo.StepOf(&pods.Items[i])
		same := func(i runapi.Image) bool { return i.Node == "" && i.Container == name }
		for _, image := range environment.Containers("", &pods.Items[i]) {
			if image.Container == argo.MainContainer && name != "" && !slices.ContainsFunc(e.Images, same) {
				image.Container = name
				e.Images = append(e.Images, image)
			}
		}
	}
	e.Sort()
	return &e, nil
}
