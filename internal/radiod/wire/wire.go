// Package wire is the protocol between the CNI plugin and radiod: one request and one answer, JSON over a
// unix socket of packets. The pod's network namespace is passed as a descriptor with the request.
package wire

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"vignette.dev/vignette/internal/radiod/holder"
)

// DefaultSocket of radiod on the host.
const DefaultSocket = "/run/vignette/radiod.sock"

// MaxMessage is the size limit of a request or an answer, bytes. GC's valid attachments may be long.
const MaxMessage = 128 << 10

// Attachment as the CNI runtime identifies it.
type Attachment struct {
	ContainerID string `json:"containerID"`
	Interface   string `json:"interface"`
}

// Request of the plugin.
type Request struct {
	// Command as in the CNI specification: ADD, DEL, CHECK, GC or STATUS.
	Command string `json:"command"`
	// Configuration is the name of the network configuration, that is of the NetworkAttachmentDefinition.
	Configuration string `json:"configuration"`
	// Network is the network's name in the experiment, for messages.
	Network string `json:"network,omitempty"`
	Attachment
	PodUID       string `json:"podUID,omitempty"`
	PodNamespace string `json:"podNamespace,omitempty"`
	PodName      string `json:"podName,omitempty"`
	// Namespace is the path of the network namespace on the host.
	Namespace string `json:"namespace,omitempty"`
	// Valid attachments, for GC.
	Valid []Attachment `json:"valid,omitempty"`
}

// Answer of radiod.
type Answer struct {
	// Error is empty on success.
	Error string `json:"error,omitempty"`
	// Retry reports whether the same request may succeed soon.
	Retry bool `json:"retry,omitempty"`
	// MAC, Address (with prefix length) and MTU of an attachment that was added.
	MAC     string `json:"mac,omitempty"`
	Address string `json:"address,omitempty"`
	MTU     int    `json:"mtu,omitempty"`
}

// Pod as CNI_ARGS names it.
type Pod struct{ UID, Namespace, Name string }

// ParseArgs reads CNI_ARGS, KEY=VALUE pairs separated by semicolons. Of repeated keys, as with Multus, the
// first is taken, because later ones may come from a tenant.
func ParseArgs(args string) (Pod, error) {
	values := map[string]string{}
	for pair := range strings.SplitSeq(args, ";") {
		key, value, ok := strings.Cut(pair, "=")
		if _, known := values[key]; ok && !known {
			values[key] = value
		}
	}
	pod := Pod{values["K8S_POD_UID"], values["K8S_POD_NAMESPACE"], values["K8S_POD_NAME"]}
	if pod.UID == "" {
		return pod, errors.New("CNI_ARGS: K8S_POD_UID is missing; the container runtime must pass the pod's UID")
	}
	return pod, nil
}

// Ask sends one request, with the namespace unless it is nil, and waits for the answer.
func Ask(socket string, timeout time.Duration, request Request, namespace *os.File) (Answer, error) {
	var answer Answer
	dialled, err := net.DialTimeout("unixpacket", socket, timeout)
	if err != nil {
		return answer, fmt.Errorf("radiod at %s: %w", socket, err)
	}
	conn := dialled.(*net.UnixConn)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(timeout)) // fails only on a closed connection
	fd := -1
	if namespace != nil {
		fd = int(namespace.Fd())
	}
	if err := holder.Send(conn, request, fd); err != nil {
		return answer, fmt.Errorf("ask radiod: %w", err)
	}
	if _, err := holder.Receive(conn, MaxMessage, &answer); err != nil {
		return answer, fmt.Errorf("radiod's answer: %w", err)
	}
	return answer, nil
}

// Receive reads a connection's request. The caller closes the namespace unless it is nil.
func Receive(conn *net.UnixConn) (request Request, namespace *os.File, err error) {
	fd, err := holder.Receive(conn, MaxMessage, &request)
	if err != nil {
		return request, nil, fmt.Errorf("request: %w", err)
	}
	if fd >= 0 {
		namespace = os.NewFile(uintptr(fd), "network namespace")
	}
	return request, namespace, nil
}

// Reply sends the answer to a request.
func Reply(conn *net.UnixConn, answer Answer) error { return holder.Send(conn, answer, -1) }
