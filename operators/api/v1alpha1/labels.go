package v1alpha1

// Labels on everything the operator creates. They are for people and selectors; nothing trusts
// them: membership and ownership are decided by UID.
const (
	LabelExperiment    = "vignette.dev/experiment"
	LabelExperimentUID = "vignette.dev/experiment-uid"
	LabelNode          = "vignette.dev/node"
	LabelGroup         = "vignette.dev/group"
	LabelNetwork       = "vignette.dev/network"

	// LabelExperimentNamespace is set on objects in the platform's namespace.
	LabelExperimentNamespace = "vignette.dev/experiment-namespace"

	// LabelForExperiments, with value ForExperiments, is set by administrators on Secrets and volume claims that experiments of the
	// namespace may use. Only users who may write such objects can set it.
	LabelForExperiments = "vignette.dev/for-experiments"
	ForExperiments      = "true"

	// LabelManagementNetwork, with value ManagementOpen, is set by administrators on namespaces whose nodes may have an open
	// cluster interface.
	LabelManagementNetwork = "vignette.dev/management-network"

	// LabelTakesExperiments, with value NoExperiments, is set by administrators on hosts that shall have no nodes of experiments.
	LabelTakesExperiments = "vignette.dev/experiments"
	NoExperiments         = "false"

	// LabelRerunOf is the UID of the run that an experiment repeats, LabelBasedOn that of the run whose spec was changed to make it,
	// and AnnotationRerun describes that run as a runapi.Rerun in JSON. `vignette rerun` sets them.
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

	// Finalizer lets the operator delete objects in other namespaces, for which owner references do not work.
	Finalizer = "vignette.dev/cleanup"

	// TokenAudience is the audience of the projected tokens with which agents, radiod, the
	// workflow's pods and the operator authenticate at the server.
	TokenAudience = "vignette.dev/server"
)
