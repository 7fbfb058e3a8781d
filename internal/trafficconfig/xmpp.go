package trafficconfig

// Names at every XMPP server of an experiment. All servers use the same, as a client may know only a loopback address of its server.
const (
	// XMPPDomain is the domain of a server's accounts.
	XMPPDomain = "vignette"
	// XMPPService is the address of its publish/subscribe service (XEP-0060).
	XMPPService = "pubsub." + XMPPDomain
	// XMPPAccount is the user name and the password of a server without security. Each client is a resource of this shared account.
	XMPPAccount = "vignette"
)

// XMPPStanzaBytes is the largest stanza that a server accepts: a payload of 16 MiB as base64, and the markup around it.
const XMPPStanzaBytes = 24 << 20
