package v1alpha1

// Labels on everything the operator creates. They are for people and selectors; nothing trusts
// them: membership and ownership are decided by UID.
const (
	LabelExperiment    = "vignette.dev/experiment"
	LabelExperimentUID = "vignette.dev/experiment-uid"
	LabelNode          = "vignette.dev/node"
	LabelGroup         = "vignette.dev/group"
	LabelNetwork       = "vignette.dev/network"

	// LabelExperimentNamespace is set on objects that live in the platform's namespace.
	LabelExperimentNamespace = "vignette.dev/experiment-namespace"

	// LabelForExperiments, with value ForExperiments, is what administrators set on the Secrets and volume claims that experiments of
	// the namespace may use. Kubernetes lets nobody set it who may not write such objects.
	LabelForExperiments = "vignette.dev/for-experiments"
	ForExperiments      = "true"

	// LabelManagementNetwork, with value ManagementOpen, is what administrators set on the namespaces whose nodes may have an open cluster
	// interface.
	LabelManagementNetwork = "vignette.dev/management-network"

	// LabelRerunOf is the UID of the run that an experiment repeats, LabelBasedOn that of the run whose spec was changed to make it,
	// and AnnotationRerun what is known of that run, a runapi.Rerun as JSON. `vignette rerun` sets them.
	LabelRerunOf    = "vignette.dev/rerun-of"
	LabelBasedOn    = "vignette.dev/based-on"
	AnnotationRerun = "vignette.dev/rerun"

	// AnnotationToolbox on a node's pod is the image that `vignette shell --toolbox` brings into it.
	AnnotationToolbox = "vignette.dev/toolbox-image"
)

const (
	// SchedulingGate holds every pod of an experiment until all of them are members of their
	// radio networks, so that they start together or not at all.
	SchedulingGate = "vignette.dev/all-or-none"

	// Finalizer lets the operator remove what owner references cannot reach.
	Finalizer = "vignette.dev/cleanup"

	// TokenAudience is the audience of the projected tokens with which agents, radiod, the
	// workflow's pods and the operator talk to the server.
	TokenAudience = "vignette.dev/server"
)
