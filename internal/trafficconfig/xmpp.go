package trafficconfig

// Names at every XMPP server of an experiment. They are the same at all of them, as a client may know its server by no more than a loopback address.
const (
	// XMPPDomain is what a server's accounts are at.
	XMPPDomain = "vignette"
	// XMPPService is the address of its publish/subscribe service (XEP-0060).
	XMPPService = "pubsub." + XMPPDomain
	// XMPPAccount is the user name, and password too, where the server has no security. All clients share an account, each is a resource of it.
	XMPPAccount = "vignette"
)

// XMPPStanzaBytes is the largest stanza that a server takes: a payload of 16 MiB as base64, and what is around it.
const XMPPStanzaBytes = 24 << 20
