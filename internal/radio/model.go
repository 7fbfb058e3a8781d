package radio

// Model decides when each frame of a network arrives, or why it is lost. Its methods must neither block nor allocate
// per frame, and know no time but the one that they are given.
type Model interface {
	// Members sets the attached ports, after every change. Each port's Slot is its index; from has the Slots before, -1
	// for new ports. Neither slice is changed afterwards.
	Members(now int64, ports []*Port, from []int)

	// Transmit takes a frame that its source's node handed to the radio at time now. The model calls exactly
	// one of n.Hold, n.Keep, n.Deliver, n.Radiate or n.Drop for f, and for every copy that it makes with
	// n.Copy. It sets f.Receivers before Deliver or Radiate. Deliver is for models without a physical layer,
	// Radiate for those with one.
	Transmit(n *Network, now int64, f *Frame)

	// Due is called at the time given to Hold. The model again calls exactly one of n.Hold, n.Keep, n.Deliver,
	// n.Radiate or n.Drop.
	Due(n *Network, now int64, f *Frame)
}

// Waker is a Model with a clock of its own, such as that of time slots.
type Waker interface {
	Model
	// Wake is called at the time given to Network.WakeAt, or as soon after it as possible.
	Wake(n *Network, now int64)
}

// Tallier is a Model that counts missed frames later and many at once. Tally is called before counters are
// read. Counts that a killed process had not tallied are lost.
type Tallier interface {
	Model
	// Tally counts the missed frames of up to that many senders, and reports whether all are counted.
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
	// Receivers of Deliver and Radiate. The slice may be shared and must not be changed while the frame is
	// held.
	Receivers []*Port
	// Context belongs to the model; a pointer in it costs no allocation.
	Context any

	held  bool
	class int
	next  *Frame // in the pool
}

// Reason why a frame was dropped.
type Reason int

// Written means that a frame was not dropped at a port.
const Written Reason = -1

// The reasons. Up to NoReceiver they are counted at the sender, those after it at the receiver.
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
	// InFlightAtEnd: the network ended while the frame was under way, or its sender left while the frame was
	// being read.
	InFlightAtEnd
	// TooLarge: no time slot has room for the frame, which may not be fragmented.
	TooLarge
	// MissedSlot: the emulation was too late for the time slot and sent nothing in it. This is overload, not
	// radio.
	MissedSlot
	// EmissionControl: the sender keeps radio silence.
	EmissionControl
	// Restarted: radiod was killed while the frame was under way.
	Restarted
	// NoReceiver: nobody with the destination's address is attached.
	NoReceiver
	// Detached: the receiver was detached while the frame was under way.
	Detached
	// InterfaceDown: the receiver's node has its interface down.
	InterfaceDown
	// WriteFailed: the receiver's kernel refused the frame for another reason.
	WriteFailed
	// BelowSensitivity: the signal was weaker than the receiver can detect.
	BelowSensitivity
	// LowSINR: drawn by the packet completion rate at the receiver's SINR.
	LowSINR
	// Interfered: as LowSINR, but the same draw would have been a success without other transmissions.
	Interfered
	// HalfDuplex: the receiver was sending.
	HalfDuplex
	// NotListening: the receiver's schedule had it on another frequency, idle, or sending.
	NotListening
	// FragmentTimeout: the receiver had given up a frame sent in parts, because the next part came too late.
	FragmentTimeout

	reasons
)

var reasonNames = [reasons]string{"loss", "queueFull", "silent", "malformed", "oversize", "inFlightAtEnd", "tooLarge", "missedSlot",
	"emissionControl", "radiodRestarted", "noReceiver",
	"detached", "interfaceDown", "writeFailed", "belowSensitivity", "lowSINR", "interfered", "halfDuplex", "notListening", "fragmentTimeout"}

// String is the reason's name in metrics and samples.
func (r Reason) String() string { return reasonNames[r] }
