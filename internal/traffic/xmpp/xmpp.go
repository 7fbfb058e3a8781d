// Package xmpp describes XMPP to all programs. Its client is in its folder.
package xmpp

import "vignette.dev/vignette/internal/traffic/protocol"

// Protocol starts TLS at its only port. Its payload is the client's limit, which encodes bytes as text.
var Protocol = protocol.Protocol{Name: "xmpp", Server: "XMPP server", Brokers: []string{"prosody"}, Port: 5222, MaxPayloadBytes: 16 << 20}

// Names at every XMPP server of an experiment. All servers use the same, as a client may know only a loopback address of its server.
const (
	// Domain is the domain of a server's accounts.
	Domain = "vignette"
	// Service is the address of its publish/subscribe service (XEP-0060).
	Service = "pubsub." + Domain
	// Account is the user name and the password of a server without security. Each client is a resource of this shared account.
	Account = "vignette"
)

// StanzaBytes is the largest stanza that a server accepts: a payload of 16 MiB as base64, and the markup around it.
const StanzaBytes = 24 << 20
