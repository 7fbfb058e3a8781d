package proxy

// Steps of a request. Tests kill a proxy at each.
const (
	stepRead      = "near-read"
	stepSpooled   = "near-spooled"
	stepAccepted  = "near-accepted"
	stepTaken     = "near-taken"
	stepSent      = "near-sent"
	stepAnswered  = "near-answered"
	stepStored    = "near-stored"
	stepDelivered = "near-delivered"
	stepRemoved   = "near-removed"

	stepArrived   = "far-arrived"
	stepDialled   = "far-dialled"
	stepStarted   = "far-started"
	stepWritten   = "far-written"
	stepResponded = "far-responded"
	stepRecorded  = "far-recorded"
	stepAnswering = "far-answering"
)

// atStep is called at each step of a request.
var atStep = func(string) {}
