package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/validate"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// fieldManager of what `run` applies.
const fieldManager = "vignette-cli"

func newRun(t *target) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Start the experiment or campaign in a file, and follow it with --watch",
		Long: "run creates the experiment in a file, after the Waveforms and Scenarios beside it. With --watch it follows the\n" +
			"experiment to its end and fails if that does, or is not accepted. Ctrl-C stops following, not the experiment.\n" +
			"An experiment without a duration is a live cluster: --watch follows it until it is up, and shows how to use it.\n" +
			"A campaign in the file is created, or updated if it exists: finished points are not run again.",
		Example: "  vignette run scenarios/quickstart/experiment.yaml --watch\n" +
			"  vignette run -n team-nor experiment.yaml\n" +
			"  vignette run scenarios/e4/campaigns/setting1.yaml",
		Args:              oneArgument("the FILE of an experiment or a campaign"),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := validate.ReadFile(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			connect := sync.OnceValues(func() (*cluster, error) { return t.connect(cmd.Context()) })
			objects, err := validateFile(args[0], text, cmd.ErrOrStderr(), func(object validate.Awaited) bool {
				c, err := connect()
				return err == nil && c.has(cmd.Context(), object)
			})
			if err != nil {
				return err
			}
			if err := checkRun(args[0], objects, t.namespace, follow); err != nil {
				return err
			}
			c, err := connect()
			if err != nil {
				return err
			}
			experiments, err := c.submit(cmd.Context(), objects, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			campaigns, err := c.submitCampaigns(cmd.Context(), objects, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if !follow {
				text := ""
				if len(experiments) > 0 {
					text = followHint(experiments[0])
				} else {
					text = followCampaignHint(campaigns[0])
				}
				_, err := fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			if len(campaigns) > 0 {
				return c.watchStatus(cmd.Context(), c.watchedCampaign(campaigns[0]), manyInterval, cmd.OutOrStdout())
			}
			return c.watch(cmd.Context(), experiments[0], newView(cmd.OutOrStdout()))
		},
	}
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "follow the experiment to its end, or a live cluster until it is up")
	return cmd
}

// checkRun refuses what the flags cannot mean, before anything is created. namespace is that of -n.
func checkRun(file string, objects []*unstructured.Unstructured, namespace string, follow bool) error {
	runs := 0
	for _, object := range objects {
		if own := object.GetNamespace(); own != "" && namespace != "" && own != namespace {
			return fmt.Errorf("-n %s: %s %s of %s has namespace: %s in its metadata: leave out one of the two", namespace, object.GetKind(), object.GetName(), file, own)
		}
		if isExperiment(object) || isCampaign(object) {
			runs++
		}
	}
	if follow && runs > 1 {
		return fmt.Errorf("--watch follows one experiment or campaign, and %s has %d: leave it out, and see vignette status", file, runs)
	}
	return nil
}

func followHint(e *v1alpha1.Experiment) string {
	return fmt.Sprintf("Follow it: vignette status -n %[1]s %[2]s; results in the end: vignette results -n %[1]s %[2]s\n", e.Namespace, e.Name)
}

func followCampaignHint(camp *v1alpha1.Campaign) string {
	return fmt.Sprintf("Follow it: vignette campaign status -n %[1]s %[2]s; results so far: vignette campaign results -n %[1]s %[2]s\n", camp.Namespace, camp.Name)
}

// validateFile refuses what the API server would refuse, before anything is created. has reports whether the cluster has an object.
func validateFile(name string, text []byte, complaints io.Writer, has func(validate.Awaited) bool) ([]*unstructured.Unstructured, error) {
	report := validate.Text(name, text)
	for _, finding := range report.Findings {
		if finding.Elsewhere { // the cluster reports it
			continue
		}
		if finding.Awaits.Name == "" || report.Failed() || !has(finding.Awaits) {
			fmt.Fprintln(complaints, finding)
		}
	}
	if report.Failed() {
		return nil, exit(exitFailure)
	}
	experiments := 0
	for _, object := range report.Manifests {
		if isExperiment(object) || isCampaign(object) {
			experiments++
		}
	}
	if experiments == 0 {
		return nil, fmt.Errorf("%s has no Experiment and no Campaign: use kubectl apply for other objects", name)
	}
	return report.Manifests, nil
}

func isExperiment(object *unstructured.Unstructured) bool { return isKind(object, "Experiment") }

func isCampaign(object *unstructured.Unstructured) bool { return isKind(object, "Campaign") }

func isKind(object *unstructured.Unstructured, kind string) bool {
	return object.GetKind() == kind && object.GroupVersionKind().Group == v1alpha1.GroupVersion.Group
}

// has reports whether the cluster has an object of vignette.
func (c *cluster) has(ctx context.Context, object validate.Awaited) bool {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(object.Kind))
	key := client.ObjectKey{Name: object.Name}
	if object.Kind != "Waveform" {
		key.Namespace = cmp.Or(object.Namespace, c.namespace)
	}
	return c.kube.Get(ctx, key, found) == nil
}

// apply creates an object of a file, or updates it.
func (c *cluster) apply(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GetNamespace() == "" {
		namespaced, err := c.kube.IsObjectNamespaced(object)
		if err != nil {
			return explain(err)
		}
		if namespaced {
			object.SetNamespace(c.namespace)
		}
	}
	var err error
	if object.GetName() == "" && object.GetGenerateName() != "" {
		err = c.kube.Create(ctx, object, client.FieldOwner(fieldManager), client.FieldValidation("Strict"))
	} else {
		err = c.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership)
	}
	if isMissingNamespace(err) {
		return missingNamespace(object.GetNamespace())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), explain(err))
	}
	return nil
}

func missingNamespace(name string) error {
	return fmt.Errorf("there is no namespace %[1]s: kubectl create namespace %[1]s, or choose another one with -n", name)
}

// submitCampaigns applies the campaigns among objects, after what they refer to. An existing one is updated: its operator runs only what
// is new in it.
func (c *cluster) submitCampaigns(ctx context.Context, objects []*unstructured.Unstructured, out io.Writer) (campaigns []*v1alpha1.Campaign, err error) {
	for _, object := range objects {
		if !isCampaign(object) {
			continue
		}
		if object.GetNamespace() == "" {
			object.SetNamespace(c.namespace)
		}
		before := &v1alpha1.Campaign{}
		missing := object.GetName() == "" || apierrors.IsNotFound(c.kube.Get(ctx, client.ObjectKeyFromObject(object), before))
		if err := c.apply(ctx, object); err != nil {
			return nil, err
		}
		camp := &v1alpha1.Campaign{}
		if err := c.kube.Get(ctx, client.ObjectKeyFromObject(object), camp); err != nil {
			return nil, explain(err)
		}
		// The observed generation says nothing: the operator may have seen the change already.
		done := "changed"
		switch {
		case missing:
			done = "created"
		case before.Generation == camp.Generation:
			done = "is there already, and the same"
		}
		fmt.Fprintf(out, "campaign %s/%s %s\n", camp.Namespace, camp.Name, done)
		campaigns = append(campaigns, camp)
	}
	return campaigns, nil
}

// submit applies what experiments refer to, then creates the experiments. A run is a new object, so an existing one is an error. It
// prints each at once, as a later one may be refused.
func (c *cluster) submit(ctx context.Context, objects []*unstructured.Unstructured, out io.Writer) (experiments []*v1alpha1.Experiment, err error) {
	for _, object := range objects {
		if isExperiment(object) || isCampaign(object) {
			continue
		}
		if err := c.apply(ctx, object); err != nil {
			return nil, err
		}
	}
	for _, object := range objects {
		if !isExperiment(object) {
			continue
		}
		if object.GetNamespace() == "" {
			object.SetNamespace(c.namespace)
		}
		err := c.kube.Create(ctx, object, client.FieldOwner(fieldManager), client.FieldValidation("Strict"))
		if apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("experiment %[1]s exists already in namespace %[2]s, and a new run is a new object: delete it "+
				"(kubectl delete -n %[2]s experiment %[1]s; its archived results stay) or give the new one another name", object.GetName(), object.GetNamespace())
		}
		if isMissingNamespace(err) {
			return nil, missingNamespace(object.GetNamespace())
		}
		if err != nil {
			return nil, explain(err)
		}
		experiments = append(experiments, &v1alpha1.Experiment{})
		e := experiments[len(experiments)-1]
		e.Namespace, e.Name, e.UID = object.GetNamespace(), object.GetName(), object.GetUID()
		fmt.Fprintf(out, "experiment %s/%s created\n", e.Namespace, e.Name)
	}
	return experiments, nil
}
