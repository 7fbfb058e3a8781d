package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"vignette.dev/vignette/internal/core/fieldpath"
	"vignette.dev/vignette/internal/core/queue"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/requirements"
	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// Forecast of what an experiment takes, or each run of a campaign, and when it would start.
type Forecast struct {
	// Normal is the spec with all defaults and in one order, as YAML.
	Normal      string  `json:"normal"`
	Pods        int     `json:"pods"`
	CPUCores    float64 `json:"cpuCores"`
	MemoryBytes int64   `json:"memoryBytes"`
	// DurationSeconds from its admission until its room is free again; absent for a live cluster.
	DurationSeconds float64 `json:"durationSeconds,omitempty"`
	// Points, Runs, Parallelism and CampaignSeconds are those of a campaign.
	Points          int     `json:"points,omitempty"`
	Runs            int     `json:"runs,omitempty"`
	Parallelism     int     `json:"parallelism,omitempty"`
	CampaignSeconds float64 `json:"campaignSeconds,omitempty"`
	// Quotas of the namespace.
	Quotas []QuotaNeed `json:"quotas"`
	// Start is when it would start if it were created now; absent if that is unknown.
	Start *ExpectedStart `json:"start,omitempty"`
	// Unknown names what could not be read, for people.
	Unknown []string `json:"unknown"`
}

// QuotaNeed is what an experiment takes of a quota.
type QuotaNeed struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Needed   string `json:"needed"`
	Free     string `json:"free"`
	Enough   bool   `json:"enough"`
}

// ExpectedStart is the queue's decision on an experiment that is not created yet.
type ExpectedStart struct {
	Admitted bool `json:"admitted"`
	// Position in the queue; 0 for one that can never start.
	Position int `json:"position,omitempty"`
	// ExpectedStart if all runs end in time; absent if it is unknown.
	ExpectedStart *time.Time `json:"expectedStart,omitempty"`
	Message       string     `json:"message"`
}

// mainObject is the campaign of a text, or else its experiment; nil without any.
func mainObject(objects []*unstructured.Unstructured) (main *unstructured.Unstructured) {
	for _, kind := range []string{"Campaign", "Experiment"} {
		for _, object := range objects {
			if object.GetKind() == kind && object.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
				return object
			}
		}
	}
	return nil
}

// specOf an experiment, or of a campaign's template, with all defaults. It is a copy.
func specOf(object *unstructured.Unstructured) map[string]any {
	path := []string{"spec"}
	if object.GetKind() == "Campaign" {
		path = []string{"spec", "template", "spec"}
	}
	spec, _, err := unstructured.NestedMap(object.Object, path...)
	if err != nil || spec == nil {
		spec = map[string]any{}
	}
	fieldpath.Default(spec)
	return spec
}

// normal is the YAML of an object's spec, by which two texts are compared.
func normal(object *unstructured.Unstructured) string {
	spec := any(specOf(object))
	if object.GetKind() == "Campaign" {
		whole, _, _ := unstructured.NestedMap(object.Object, "spec") // a campaign that was found valid
		_ = unstructured.SetNestedField(whole, spec, "template", "spec")
		spec = whole
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		return "" // it came from YAML
	}
	return string(text)
}

// forecast of the campaign of a text, or else of its experiment. Without a namespace it asks no cluster.
func (c *Console) forecast(w http.ResponseWriter, r *http.Request, user *User) error {
	text, err := readBody(w, r)
	if err != nil {
		return err
	}
	namespace := r.URL.Query().Get("namespace")
	around, err := newSurroundings(user, namespace)
	if err != nil {
		return err
	}
	done, err := c.startJudging(r.Context())
	if err != nil {
		return err
	}
	defer done()
	others, _ := around.named(r.Context(), text) // the page's validation has the warnings
	report := validate.TextBeside(validatedFile, text, others)
	object := mainObject(report.Manifests)
	if report.Failed() || object == nil {
		return Errorf(http.StatusUnprocessableEntity, "the text has errors, or no Experiment and no Campaign: vignette validate says which")
	}
	kube, err := newReader(user, &http.Client{Transport: user.Transport})
	if err != nil {
		return err
	}
	templates := nodeTemplates{}
	if namespace != "" {
		templates.list(r.Context(), kube, "", namespace, c.config.PlatformNamespace)
	}
	templates.add(namespace, report.Manifests)
	options := render.Options{Namespace: c.config.PlatformNamespace, MemoryLimit: c.memoryLimit(r.Context(), kube)}
	f, made, err := newForecaster(options, namespace, object, templates)
	if err != nil {
		return err
	}
	made.expand(report.Expansions[object.GetKind()+"/"+object.GetName()])
	if namespace != "" {
		f.ask(r.Context(), kube, made)
	}
	return WriteJSON(w, made)
}

// nodeTemplates are the virtual machines of NodeTemplates, by namespace and name.
type nodeTemplates map[string]map[string]v1alpha1.VirtualMachine

// list those of the first namespaces that the user may read; the empty one is all of them.
func (n nodeTemplates) list(ctx context.Context, kube client.Reader, namespaces ...string) {
	for _, namespace := range namespaces {
		var list v1alpha1.NodeTemplateList
		if kube.List(ctx, &list, client.InNamespace(namespace)) != nil {
			continue // newForecaster tells which ones are missing
		}
		for i := range list.Items {
			n.set(list.Items[i].Namespace, list.Items[i].Name, list.Items[i].Spec.VM)
		}
		if namespace == "" {
			return
		}
	}
}

// add those of a text, which come before the namespace's own.
func (n nodeTemplates) add(namespace string, objects []*unstructured.Unstructured) {
	for _, object := range objects {
		var template v1alpha1.NodeTemplate
		if object.GetKind() == "NodeTemplate" && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &template) == nil {
			n.set(cmp.Or(template.Namespace, namespace), template.Name, template.Spec.VM)
		}
	}
}

func (n nodeTemplates) set(namespace, name string, vm v1alpha1.VirtualMachine) {
	if n[namespace] == nil {
		n[namespace] = map[string]v1alpha1.VirtualMachine{}
	}
	n[namespace][name] = vm
}

// of an experiment: those of its namespace, or else of the platform's. Missing ones are named.
func (n nodeTemplates) of(e *v1alpha1.Experiment, platform string) (found map[string]v1alpha1.VirtualMachine, missing []string) {
	found = map[string]v1alpha1.VirtualMachine{}
	for _, node := range e.Spec.Nodes {
		if node.VM == nil || node.VM.Template == "" {
			continue
		}
		vm, known := n[e.Namespace][node.VM.Template]
		if !known {
			vm, known = n[platform][node.VM.Template]
		}
		if known {
			found[node.VM.Template] = vm
		} else if !slices.Contains(missing, node.VM.Template) {
			missing = append(missing, node.VM.Template)
		}
	}
	return found, missing
}

// newForecaster of an experiment, with what follows from its spec.
func newForecaster(options render.Options, namespace string, object *unstructured.Unstructured, templates nodeTemplates) (*forecaster, *Forecast, error) {
	f := &forecaster{experiment: &v1alpha1.Experiment{}, kinds: queue.NewResourceKinds(), options: options, templates: templates}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"spec": specOf(object)}, f.experiment); err != nil {
		return nil, nil, err
	}
	f.experiment.Namespace, f.experiment.Name = namespace, object.GetName()
	needed, ok := f.requirementsOf(f.experiment)
	if !ok {
		return nil, nil, Errorf(http.StatusUnprocessableEntity, "the experiment has errors: vignette validate says which")
	}
	f.demand, f.lasts = f.kinds.DemandOf(needed.Pods, needed.EMANE), needed.Duration()
	p := &Forecast{Normal: normal(object), Pods: len(needed.Pods), Quotas: []QuotaNeed{}, Unknown: []string{}}
	for _, pod := range needed.Pods {
		requests := queue.Requests(&pod.Spec)
		p.CPUCores += float64(requests.Cpu().MilliValue()) / 1000
		p.MemoryBytes += requests.Memory().Value()
	}
	_, missing := templates.of(f.experiment, options.Namespace)
	for _, name := range missing {
		p.Unknown = append(p.Unknown, "NodeTemplate "+name+", whose amounts are not counted")
	}
	if f.lasts != queue.Forever {
		p.DurationSeconds = f.lasts.Seconds()
	}
	return f, p, nil
}

// expand adds what a campaign comes to; nothing for an experiment.
func (p *Forecast) expand(e validate.Expansion) {
	if e.Runs == 0 {
		return
	}
	p.Points, p.Runs, p.Parallelism = e.Points, e.Runs, e.Parallelism
	p.CampaignSeconds = e.Takes().Seconds()
}

func quotaNeeds(quotas []queue.Quota, demand *queue.Demand) []QuotaNeed {
	needs := []QuotaNeed{}
	for i := range quotas {
		q := &quotas[i]
		for claim := range q.Hard {
			if q.Hard[claim] >= queue.Unlimited || demand.Claim[claim] == 0 {
				continue
			}
			free := max(0, q.Hard[claim]-q.Used[claim])
			name, needed := queue.ClaimText(claim, demand.Claim[claim])
			_, left := queue.ClaimText(claim, free)
			needs = append(needs, QuotaNeed{Name: q.Name, Resource: name, Needed: needed, Free: left, Enough: demand.Claim[claim] <= free})
		}
	}
	return needs
}

// forecaster of an experiment by what the user may see of the cluster.
type forecaster struct {
	experiment  *v1alpha1.Experiment
	demand      *queue.Demand
	lasts       time.Duration
	kinds       *queue.ResourceKinds
	options     render.Options // as the operator has them, as far as amounts depend on them
	templates   nodeTemplates
	nodes       corev1.NodeList
	pods        corev1.PodList
	quotas      corev1.ResourceQuotaList
	experiments v1alpha1.ExperimentList
}

func (f *forecaster) requirementsOf(e *v1alpha1.Experiment) (requirements.Requirements, bool) {
	templates, _ := f.templates.of(e, f.options.Namespace)
	return requirements.Of(e, f.options, templates, requirements.StartLead)
}

// ask the cluster what is free. Objects that the user may not read stay unknown.
func (f *forecaster) ask(ctx context.Context, kube client.Reader, p *Forecast) {
	list := func(list client.ObjectList, what string, options ...client.ListOption) bool {
		err := kube.List(ctx, list, options...)
		switch {
		case apierrors.IsForbidden(err):
			p.Unknown = append(p.Unknown, what+", which you may not read")
		case err != nil:
			p.Unknown = append(p.Unknown, what+", which could not be read")
		}
		return err == nil
	}
	own := f.experiment.Namespace
	if kube.List(ctx, &f.quotas) == nil || list(&f.quotas, "the quotas of namespace "+own, client.InNamespace(own)) {
		p.Quotas = quotaNeeds(requirements.QuotasByNamespace(f.quotas.Items)[own], f.demand)
	}
	if queueName := f.experiment.Spec.QueueName; queueName != "" {
		p.Unknown = append(p.Unknown, "when it starts, as Kueue decides that by LocalQueue "+queueName)
		return
	}
	if list(&f.nodes, "the cluster's hosts") && list(&f.pods, "the pods of all namespaces") && list(&f.experiments, "the experiments of all namespaces") {
		p.Start = f.start(time.Now())
	}
}

// start asks the operator's queue when the experiment would start, after all that wait already.
func (f *forecaster) start(now time.Time) *ExpectedStart {
	cluster := requirements.Cluster{
		Now: now, Kinds: f.kinds, Nodes: f.nodes.Items, Quotas: f.quotas.Items, Options: f.options,
		Templates: func(e *v1alpha1.Experiment) map[string]v1alpha1.VirtualMachine {
			templates, _ := f.templates.of(e, f.options.Namespace)
			return templates
		},
		Needed: func(e *v1alpha1.Experiment) (requirements.Needed, bool) {
			needed, ok := f.requirementsOf(e)
			return requirements.NeededOf(&needed, f.kinds), ok
		},
	}
	for i := range f.experiments.Items {
		cluster.Experiments = append(cluster.Experiments, &f.experiments.Items[i])
	}
	for i := range f.pods.Items {
		if pod := f.pods.Items[i]; pod.Labels[v1alpha1.LabelExperimentUID] != "" {
			cluster.Pods = append(cluster.Pods, pod)
		} else {
			cluster.OtherPods = append(cluster.OtherPods, pod)
		}
	}
	snapshot, _ := cluster.Snapshot()
	own := requirements.IdentityOf(f.experiment)
	own.Created = now
	snapshot.Waiters = append(snapshot.Waiters, queue.Waiter{Identity: own, Demand: f.demand, Duration: f.lasts})
	decisions := queue.Decide(snapshot)
	decision := decisions[len(decisions)-1]
	start := &ExpectedStart{Admitted: decision.Admitted, Position: decision.Position, Message: decision.Message}
	if !decision.ExpectedStart.IsZero() {
		start.ExpectedStart = &decision.ExpectedStart
	}
	return start
}
