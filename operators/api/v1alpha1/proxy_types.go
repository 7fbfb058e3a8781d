package v1alpha1

// Proxy is one of two HTTP proxies on either side of a constrained link. HTTP clients name the near one as their proxy. It stores their
// requests, carries them to the far one, and passes the responses back. The far one calls the services. A proxy with peer is a near
// one, and has the settings of both.
type Proxy struct {
	// peer is the far proxy: an app's name, or node/app if several nodes run it. Without it the proxy is a far one.
	// +kubebuilder:validation:MaxLength=48
	// +optional
	Peer string `json:"peer,omitempty"`

	// protocol between the two: http (the default), coap, or amqp through a broker.
	// +optional
	Protocol ProxyProtocol `json:"protocol,omitempty"`

	// broker of protocol amqp: the name of a rabbitmq app, or node/app.
	// +kubebuilder:validation:MaxLength=48
	// +optional
	Broker string `json:"broker,omitempty"`

	// compression of requests and responses between the two: none (the default), gzip or zstd. Clients and services see the original.
	// +optional
	Compression ProxyCompression `json:"compression,omitempty"`

	// deadline of a request. One that has no response by then is answered with status 504. By default 5m.
	// +optional
	Deadline Duration `json:"deadline,omitempty"`

	// maxQueue is the largest number of requests that wait; further ones are answered with status 503. By default 10000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxQueue int32 `json:"maxQueue,omitempty"`

	// logMessages counts what the pair carries as messages in the results, beside those of the clients. By default it is in metrics only.
	// +optional
	LogMessages bool `json:"logMessages,omitempty"`

	// port for HTTP clients. By default 3128.
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
}

// ProxyProtocol carries requests between two proxies.
//
// +kubebuilder:validation:Enum=http;coap;amqp
type ProxyProtocol string

// The protocols between proxies.
const (
	ProxyHTTP ProxyProtocol = "http"
	ProxyCoAP ProxyProtocol = "coap"
	ProxyAMQP ProxyProtocol = "amqp"
)

// ProxyCompression is what proxies compress requests and responses with.
//
// +kubebuilder:validation:Enum=none;gzip;zstd
type ProxyCompression string

// The compressions of proxies.
const (
	ProxyCompressionNone ProxyCompression = "none"
	ProxyCompressionGzip ProxyCompression = "gzip"
	ProxyCompressionZstd ProxyCompression = "zstd"
)
