package v1alpha1

// Messaging makes an app a messaging service. Each node that runs it serves requests, and sends its own to other nodes that run it:
// the messages of a script, or one message each period. Every message is a request, and its receipt is the response.
type Messaging struct {
	// transport carries the requests: http (HTTP/1.1), coap (CoAP over UDP), coap-tcp (CoAP over TCP), soap (SOAP 1.2 over HTTP), or
	// soap-udp (SOAP-over-UDP 1.1).
	Transport MessagingTransport `json:"transport"`

	// port at which the service is reached. By default 8080 for http and soap, 5683 for coap and coap-tcp, and 3702 for soap-udp.
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`

	// server is an app of your own, with image and command, that requests are for: they go to the nodes that run it, at port and path. This
	// app then serves nobody itself.
	// +kubebuilder:validation:MaxLength=24
	// +optional
	Server string `json:"server,omitempty"`

	// path of requests to server, which may have a query. By default /messages.
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:Pattern=`^/[!-~]*$`
	// +optional
	Path string `json:"path,omitempty"`

	// encoding of the messages: json, xml, cbor, exi (with the message's schema) or exi-schemaless. By default the model's own: json for
	// geojson and military messages, else xml. With soap and soap-udp it is that of the envelope's body, xml by default.
	// +optional
	Encoding Encoding `json:"encoding,omitempty"`

	// compression of the encoded messages: none, the default, or gzip. With soap and soap-udp it is that of the whole envelope.
	// +optional
	Compression Compression `json:"compression,omitempty"`

	// receipt asks the addressee for a response. It is the default. Only coap, coap-tcp and soap-udp can do without; coap's requests are then
	// non-confirmable.
	// +optional
	Receipt *bool `json:"receipt,omitempty"`

	// timeout of a request, after which it has failed. With via it should be at least the proxy's deadline.
	// +kubebuilder:default="60s"
	// +optional
	Timeout Duration `json:"timeout,omitempty"`

	// multicast sends a message to a group, or to all, as one request to a multicast address, without receipts; for coap and soap-udp. By
	// default it is one request to each addressee.
	// +optional
	Multicast bool `json:"multicast,omitempty"`

	// network that carries multicast; by default the node's first.
	// +kubebuilder:validation:MaxLength=12
	// +optional
	Network string `json:"network,omitempty"`

	// http has the settings of http and soap.
	// +optional
	HTTP *HTTPSettings `json:"http,omitempty"`

	// coap has the settings of coap, which is CoAP over UDP.
	// +optional
	CoAP *CoAPSettings `json:"coap,omitempty"`

	// soap has the settings of soap and soap-udp.
	// +optional
	SOAP *SOAPSettings `json:"soap,omitempty"`

	// via is the proxy that carries the requests, for http and soap: an app's name (the one on the same node, else the only one) or node/app.
	// +kubebuilder:validation:MaxLength=48
	// +optional
	Via string `json:"via,omitempty"`

	// model of scripted messages: military (the default), a short text with its sender, addressee and time, or operational, as systems
	// exchange it in SOAP, always with precedence ROUTINE and classification UNCLASSIFIED.
	// +optional
	Model MessageModel `json:"model,omitempty"`

	// messages of the script.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Messages []ScriptedMessage `json:"messages,omitempty"`

	// configMap has the script, under a key of a ConfigMap in the experiment's namespace: a list as in messages if the key ends in
	// .yaml, or a table with the columns at, from, to, type, text and bytes if it ends in .csv.
	// +optional
	ConfigMap *KeyReference `json:"configMap,omitempty"`

	// push sends a message each period, instead of a script.
	// +optional
	Push *Push `json:"push,omitempty"`

	// reply is the content of responses: geojson, nffi, nffi:N, gps, image:N or bytes:N. By default a response is an empty receipt.
	// +kubebuilder:validation:MaxLength=24
	// +optional
	Reply string `json:"reply,omitempty"`
}

// Push is a periodic message of every node that it names, or of all that run the app.
type Push struct {
	// from are the nodes and groups that send. By default all nodes that run the app do.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=24
	// +listType=set
	// +optional
	From []string `json:"from,omitempty"`

	// to is the node or group that each message goes to, or all.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	To string `json:"to"`

	// period between two messages, 1ms or more.
	Period Duration `json:"period"`

	// payload of the messages: geojson (a Blue Force Tracking position; the default), nffi (an NFFI track), nffi:N
	// (a message with N tracks, as XML), gps, image:N or bytes:N. The app's encoding is for geojson and nffi.
	// +kubebuilder:validation:MaxLength=24
	// +optional
	Payload string `json:"payload,omitempty"`

	// lead is the time from the start to the period of the first message.
	// +kubebuilder:default="0s"
	// +optional
	Lead Duration `json:"lead,omitempty"`

	// phase of the first message within the period.
	// +kubebuilder:default=random
	// +optional
	Phase PushPhase `json:"phase,omitempty"`
}

// PushPhase places the first message of a push within its period. An app that pushes has no broker to connect to.
//
// +kubebuilder:validation:Enum=random;spread;aligned
type PushPhase string

// HTTPSettings configure HTTP/1.1.
type HTTPSettings struct {
	// connections are kept for further requests (Persistent, the default), or a new one is made for each (Fresh).
	// +optional
	Connections HTTPConnections `json:"connections,omitempty"`
}

// CoAPSettings configure CoAP. The defaults are those of RFC 7252, section 4.8, and RFC 7959.
type CoAPSettings struct {
	// confirmable requests are repeated until they are acknowledged. It is the default.
	// +optional
	Confirmable *bool `json:"confirmable,omitempty"`

	// ackTimeout is the least time until the first repetition; it doubles with each.
	// +kubebuilder:default="2s"
	// +optional
	ACKTimeout Duration `json:"ackTimeout,omitempty"`

	// ackRandomPercent is by how much more the first timeout is at most, drawn for each request: 50 is the ACK_RANDOM_FACTOR 1.5.
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=900
	// +optional
	ACKRandomPercent *int32 `json:"ackRandomPercent,omitempty"`

	// maxRetransmit is the largest number of repetitions.
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	MaxRetransmit *int32 `json:"maxRetransmit,omitempty"`

	// nstart is the number of outstanding requests to one addressee; further ones wait.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	NSTART int32 `json:"nstart,omitempty"`

	// blockBytes is the size of blocks of larger messages.
	// +kubebuilder:default=1024
	// +optional
	BlockBytes BlockBytes `json:"blockBytes,omitempty"`
}

// SOAPSettings configure SOAP.
type SOAPSettings struct {
	// envelope encodes the whole envelope: XML, the default, or EXI, without a schema.
	// +optional
	Envelope SOAPEnvelope `json:"envelope,omitempty"`

	// unicastRepeat is how often soap-udp sends a message to a node again, until it is answered. The default is 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	UnicastRepeat *int32 `json:"unicastRepeat,omitempty"`

	// multicastRepeat is how often soap-udp sends a message to a group again. The default is 2.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	MulticastRepeat *int32 `json:"multicastRepeat,omitempty"`
}

// SOAPEnvelope is the encoding of an envelope.
//
// +kubebuilder:validation:Enum=XML;EXI
type SOAPEnvelope string

// The encodings of envelopes.
const (
	EnvelopeXML SOAPEnvelope = "XML"
	EnvelopeEXI SOAPEnvelope = "EXI"
)

// BySOAP reports whether the requests are SOAP envelopes.
func (m *Messaging) BySOAP() bool {
	return m.Transport == TransportSOAP || m.Transport == TransportSOAPUDP
}

// MessagingTransport carries requests and responses.
//
// +kubebuilder:validation:Enum=http;coap;coap-tcp;soap;soap-udp
type MessagingTransport string

// The transports of messaging services.
const (
	TransportHTTP    MessagingTransport = "http"
	TransportCoAP    MessagingTransport = "coap"
	TransportCoAPTCP MessagingTransport = "coap-tcp"
	TransportSOAP    MessagingTransport = "soap"
	TransportSOAPUDP MessagingTransport = "soap-udp"
)

// Encoding of a message.
//
// +kubebuilder:validation:Enum=json;xml;cbor;exi;exi-schemaless
type Encoding string

// The encodings of messages.
const (
	EncodingJSON          Encoding = "json"
	EncodingXML           Encoding = "xml"
	EncodingCBOR          Encoding = "cbor"
	EncodingEXI           Encoding = "exi"
	EncodingEXISchemaless Encoding = "exi-schemaless"
)

// Compression of an encoded message.
//
// +kubebuilder:validation:Enum=none;gzip
type Compression string

// The compressions of messages.
const (
	CompressionNone Compression = "none"
	CompressionGzip Compression = "gzip"
)

// MessageModel is the content of scripted messages.
//
// +kubebuilder:validation:Enum=military;operational
type MessageModel string

// The models of scripted messages.
const (
	ModelMilitary    MessageModel = "military"
	ModelOperational MessageModel = "operational"
)

// HTTPConnections says how long connections are used.
//
// +kubebuilder:validation:Enum=Persistent;Fresh
type HTTPConnections string

// The connections of HTTP.
const (
	ConnectionsPersistent HTTPConnections = "Persistent"
	ConnectionsFresh      HTTPConnections = "Fresh"
)

// BlockBytes is the size of a block of CoAP.
//
// +kubebuilder:validation:Enum=16;32;64;128;256;512;1024
type BlockBytes int32

// Sends reports whether the service has messages of its own to send.
func (m *Messaging) Sends() bool {
	return len(m.Messages) > 0 || m.ConfigMap != nil || m.Push != nil
}

// WantsReceipt reports whether requests ask for a response.
func (m *Messaging) WantsReceipt() bool { return m.Receipt == nil || *m.Receipt }
