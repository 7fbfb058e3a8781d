package scope

// Condition types beside those of the API package.
const (
	// ConditionFailure is True as soon as it is certain that a run fails, while its logs are still being collected. It
	// keeps the reason.
	ConditionFailure = "Failure"
	// ConditionCleanedUp is False if a deletion could not remove everything in time.
	ConditionCleanedUp = "CleanedUp"
)

// Reasons of Accepted, beside those of the checks.
const (
	ReasonAccepted          = "Accepted"
	ReasonWaveformNotFound  = "WaveformNotFound"
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	ReasonSecretNotFound    = "SecretNotFound"
	ReasonSecretNotAllowed  = "SecretNotAllowed"
	ReasonOpenNotAllowed    = "ManagementNetworkNotAllowed"
	ReasonKeyNotFound       = "KeyNotFound"
	ReasonScenarioNotFound  = "ScenarioNotFound"
	// ReasonScenarioNotReady means that a scenario is wrong. Accepted is unknown while it is still being compiled.
	ReasonScenarioNotReady = "ScenarioNotReady"
	// ReasonScenarioUnavailable means that the server does not give the scenario now. Accepted is then unknown.
	ReasonScenarioUnavailable = "ScenarioUnavailable"
	ReasonSubnetOverlap       = "SubnetOverlap"
	// ReasonLimitsMissing means that a quota bounds limits which containers do not have.
	ReasonLimitsMissing   = "LimitsMissing"
	ReasonScenarioChanged = "ScenarioChanged"
	ReasonEngineMissing   = "EngineNotInstalled"
	// ReasonKubeVirtMissing means that a node is a virtual machine, and the cluster has no KubeVirt.
	ReasonKubeVirtMissing = "KubeVirtNotInstalled"
	// ReasonGuestMissing means that a virtual machine names no disk, and the platform has none.
	ReasonGuestMissing = "GuestImageMissing"
	// ReasonTemplateNotFound means that neither the namespace nor the platform has a virtual machine's template.
	ReasonTemplateNotFound = "NodeTemplateNotFound"
	// ReasonDiskNotFound means that a virtual machine's claim does not exist.
	ReasonDiskNotFound = "DiskNotFound"
	// ReasonDiskNotAllowed means that no administrator allows experiments to use a virtual machine's claim.
	ReasonDiskNotAllowed = "DiskNotAllowed"
	// ReasonNodeResources means that a node has resources as a whole, which the cluster's Kubernetes does not know.
	ReasonNodeResources = "NodeResourcesNotSupported"
	// ReasonKueueMissing means that spec.queueName is set, and the cluster has no Kueue.
	ReasonKueueMissing = "KueueNotInstalled"
)

// Reasons of Admitted for experiments that Kueue admits.
const (
	// ReasonWaitingForKueue means that Kueue has not admitted the experiment's Workload yet.
	ReasonWaitingForKueue = "WaitingForKueue"
	// ReasonKueueInactive means that the Workload was deactivated and only a person can activate it.
	ReasonKueueInactive = "KueueDeactivated"
	// ReasonWorkloadNameTaken means that somebody else has a Workload of the experiment's name.
	ReasonWorkloadNameTaken = "WorkloadNameTaken"
)

// ReasonLive is the reason of Ready while a live cluster runs.
const ReasonLive = "Live"

// Reasons of Failure.
const (
	ReasonStoppedBeforeStart  = "StoppedBeforeStart"
	ReasonProvisioningTimeout = "ProvisioningTimeout"
	ReasonPodRefused          = "PodRefused"
	ReasonSecretRefused       = "SecretRefused"
	ReasonImage               = "ImageNotAvailable"
	ReasonContainer           = "ContainerNotStarted"
	ReasonUnschedulable       = "Unschedulable"
	ReasonNotStarted          = "NodesNotStarted"
	ReasonNodeFailed          = "NodeFailed"
	ReasonAllNodesFailed      = "AllNodesFailed"
	ReasonAppFailed           = "AppFailed"
	ReasonArmedTooLate        = "ArmedTooLate"
	ReasonWorkflowNameTaken   = "WorkflowNameTaken"
	ReasonWorkflowDeleted     = "WorkflowDeleted"
	ReasonWorkflowFailed      = "WorkflowFailed"
	ReasonReferenceLost       = "ReferenceLost"
	ReasonRunRecordLost       = "RunRecordLost"
	ReasonArgoStalled         = "ArgoStalled"
	ReasonRadioNetworkDeleted = "RadioNetworkDeleted"
	ReasonRadioNetworkChanged = "RadioNetworkChanged"
	ReasonRadioRefused        = "RadioRefused"
	ReasonArchiveFull         = "ArchiveFull"
	// ReasonGuestTokenEnds means that the tokens of virtual machines end before the run, or when they do in a live cluster.
	ReasonGuestTokenEnds = "GuestTokenEnds"
	// ReasonEvicted means that Kueue has evicted a started run.
	ReasonEvicted = "Evicted"
	// ReasonNameUsed means that a node or network of another experiment has the name, or of Applied another change.
	ReasonNameUsed = "NameUsed"
)

// Reasons of Applied and of Capturing, beside Invalid.
const (
	ReasonApplied            = "Applied"
	ReasonCapturing          = "Capturing"
	ReasonWaitingForStart    = "WaitingForStart"
	ReasonExperimentNotFound = "ExperimentNotFound"
	ReasonExperimentFinished = "ExperimentFinished"
	ReasonTooLarge           = "TooLarge"
	ReasonDurationOver       = "DurationOver"
)
