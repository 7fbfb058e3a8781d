package radio

// Model decides what becomes of the frames of one network: when each arrives, or why it is lost.
// All methods run on the thread of the network's event loop and must neither block nor allocate
// per frame. Times are nanoseconds of CLOCK_MONOTONIC.
type Model interface {
	// Members tells who is attached, after every change. The slice is never changed afterwards.
	Members(ports []*Port)

	// Transmit takes a frame that its source's node handed to the radio at time now. The model
	// calls exactly one of n.Hold, n.Deliver or n.Drop for f and for every copy it makes with n.Copy.
	Transmit(n *Network, now int64, f *Frame)

	// Due is called when the time given to Hold has come. The model again calls exactly one of
	// n.Hold, n.Deliver or n.Drop.
	Due(n *Network, now int64, f *Frame)
}

// Waker is a Model with a clock of its own, such as that of time slots.
type Waker interface {
	Model
	// Wake is called on the loop's thread at the time given to Network.WakeAt, or as soon after it as the loop could.
	Wake(n *Network, now int64)
}

// Tallier is a Model that counts what receivers have missed some time later, many frames at once. Who asks for counters has it tally first. A process
// that is killed has not counted what it did not tally.
type Tallier interface {
	Model
	// Tally counts what was missed of so many senders, and tells whether that is all.
	Tally(senders int) (all bool)
}

// Frame is one Ethernet frame on its way through a model.
type Frame struct {
	// Source is the port whose node sent the frame.
	Source *Port
	// Destination address of the frame.
	Destination MAC
	// Data from the Ethernet header on, without FCS.
	Data []byte
	// Sent is when the frame was read from its source.
	Sent int64
	// Due is the time last given to Hold.
	Due int64
	// Receivers that Deliver or Radiate hands the frame to. The slice may be shared and must not be changed while the
	// frame is held.
	Receivers []*Port
	// Context belongs to the model; a pointer in it costs no allocation.
	Context any

	held  bool
	class int
	next  *Frame // in the pool
}

// Reason why a frame was dropped.
type Reason int

// The reasons, counted at the sender up to NoReceiver and at the receiver after it.
const (
	// Loss: drawn by the model.
	Loss Reason = iota
	// QueueFull: the limit of frames waiting and under way was reached.
	QueueFull
	// Silent: the network's radios are silenced.
	Silent
	// Malformed: shorter than an Ethernet header.
	Malformed
	// Oversize: longer than the network's MTU and header.
	Oversize
	// InFlightAtEnd: the network went while the frame was under way, or its sender while the frame was being read.
	InFlightAtEnd
	// TooLarge: no time slot has room for the frame, which may not be fragmented.
	TooLarge
	// MissedSlot: the emulation was too late for the time slot, so that nothing was sent in it. Overload, not radio.
	MissedSlot
	// EmissionControl: the sender keeps radio silence.
	EmissionControl
	// Restarted: radiod was killed while the frame was under way.
	Restarted
	// NoReceiver: nobody with the destination's address is attached.
	NoReceiver
	// Detached: the receiver went while the frame was under way.
	Detached
	// InterfaceDown: the receiver's node has its interface down.
	InterfaceDown
	// WriteFailed: the receiver's kernel refused the frame for another reason.
	WriteFailed
	// BelowSensitivity: the signal was weaker than the receiver can detect.
	BelowSensitivity
	// LowSINR: drawn by the packet completion rate at the receiver's SINR.
	LowSINR
	// Interfered: as LowSINR, where without other transmissions the same draw had been a success.
	Interfered
	// HalfDuplex: the receiver was sending.
	HalfDuplex
	// NotListening: the receiver's schedule had it on another frequency, idle, or sending.
	NotListening
	// FragmentTimeout: the receiver had given up a frame sent in parts, the next one of which came too late.
	FragmentTimeout

	reasons
)

var reasonNames = [reasons]string{"loss", "queueFull", "silent", "malformed", "oversize", "inFlightAtEnd", "tooLarge", "missedSlot",
	"emissionControl", "radiodRestarted", "noReceiver",
	"detached", "interfaceDown", "writeFailed", "belowSensitivity", "lowSINR", "interfered", "halfDuplex", "notListening", "fragmentTimeout"}

// String is the reason's name in metrics and samples.
func (r Reason) String() string { return reasonNames[r] }
