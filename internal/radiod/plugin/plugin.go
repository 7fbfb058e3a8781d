// Package plugin is the CNI plugin `radio`.
package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"

	"vignette.dev/vignette/internal/radiod/netns"
	"vignette.dev/vignette/internal/radiod/podnet"
	"vignette.dev/vignette/internal/radiod/wire"
)

const (
	// addTimeout covers a restart of radiod, and a member that radiod does not know yet.
	addTimeout = 10 * time.Second
	firstPause = 10 * time.Millisecond
	maxPause   = 250 * time.Millisecond
	// deleteTimeout is short, because the kubelet repeats deletions and nothing is lost meanwhile.
	deleteTimeout = time.Second
)

// Config is the network configuration in a NetworkAttachmentDefinition.
type Config struct {
	types.PluginConf
	// Network is the network's name in the experiment, for messages.
	Network string `json:"network"`
	// Socket of radiod on the host.
	Socket string `json:"socket,omitempty"`
}

// ParseConfig reads the plugin's standard input.
func ParseConfig(stdin []byte) (Config, error) {
	c := Config{Socket: wire.DefaultSocket}
	if err := json.Unmarshal(stdin, &c); err != nil {
		return c, fmt.Errorf("network configuration: %w", err)
	}
	if c.Socket == "" {
		c.Socket = wire.DefaultSocket
	}
	return c, nil
}

// Add attaches a pod.
func Add(args *skel.CmdArgs) error {
	c, answer, err := askOf("ADD", args)
	if err != nil {
		return err
	}
	result, err := resultOf(c, args, answer)
	if err != nil {
		return err
	}
	return types.PrintResult(result, c.CNIVersion)
}

// askOf sends a command about the pod's namespace to radiod.
func askOf(command string, args *skel.CmdArgs) (Config, wire.Answer, error) {
	c, err := ParseConfig(args.StdinData)
	if err != nil {
		return c, wire.Answer{}, err
	}
	request, err := requestOf(command, c, args)
	if err != nil {
		return c, wire.Answer{}, err
	}
	namespace, err := os.Open(args.Netns)
	if err != nil {
		return c, wire.Answer{}, fmt.Errorf("network namespace: %w", err)
	}
	defer namespace.Close()
	answer, err := ask(c.Socket, addTimeout, request, namespace)
	return c, answer, err
}

func requestOf(command string, c Config, args *skel.CmdArgs) (wire.Request, error) {
	pod, err := wire.ParseArgs(args.Args)
	return wire.Request{Command: command, Configuration: c.Name, Network: c.Network,
		Attachment: wire.Attachment{ContainerID: args.ContainerID, Interface: args.IfName},
		PodUID:     pod.UID, PodNamespace: pod.Namespace, PodName: pod.Name, Namespace: args.Netns}, err
}

// ask repeats a request until radiod has a final answer or the timeout is over. The last error says why.
func ask(socket string, patience time.Duration, request wire.Request, namespace *os.File) (wire.Answer, error) {
	deadline := time.Now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		answer, err := wire.Ask(socket, max(time.Until(deadline), time.Second), request, namespace)
		if err == nil && answer.Error == "" {
			return answer, nil
		}
		again := err != nil || answer.Retry
		if err == nil {
			err = errors.New(answer.Error)
		}
		if !again || time.Now().Add(pause).After(deadline) {
			return answer, err
		}
		time.Sleep(pause)
	}
}

func resultOf(c Config, args *skel.CmdArgs, answer wire.Answer) (*current.Result, error) {
	ip, network, err := net.ParseCIDR(answer.Address)
	if err != nil {
		return nil, fmt.Errorf("radiod's answer: address %q: %w", answer.Address, err)
	}
	return &current.Result{CNIVersion: c.CNIVersion,
		Interfaces: []*current.Interface{{Name: args.IfName, Mac: answer.MAC, Mtu: answer.MTU, Sandbox: args.Netns}},
		IPs:        []*current.IPConfig{{Interface: current.Int(0), Address: net.IPNet{IP: ip, Mask: network.Mask}}},
	}, nil
}

// Del detaches a pod. While radiod is down it removes the interface itself, because a pod's deletion must
// never be blocked. radiod cleans up the rest later.
func Del(args *skel.CmdArgs) error {
	c, err := ParseConfig(args.StdinData)
	if err != nil {
		return err
	}
	request, _ := requestOf("DEL", c, args) // DEL is identified by the container
	_, err = ask(c.Socket, deleteTimeout, request, nil)
	if err == nil || args.Netns == "" {
		return nil
	}
	namespace, err := os.Open(args.Netns)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the interface went with it
	}
	if err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	defer namespace.Close()
	return netns.Do(namespace, func() error { return podnet.Remove(args.IfName) })
}

// Check reports an attachment that is not as Add left it.
func Check(args *skel.CmdArgs) error {
	_, _, err := askOf("CHECK", args)
	return err
}

// GC makes radiod remove attachments that the runtime does not know. A radiod that is down finds them later
// by itself.
func GC(args *skel.CmdArgs) error {
	c, err := ParseConfig(args.StdinData)
	if err != nil {
		return err
	}
	request, _ := requestOf("GC", c, args) // GC concerns no pod
	for _, valid := range c.ValidAttachments {
		request.Valid = append(request.Valid, wire.Attachment{ContainerID: valid.ContainerID, Interface: valid.IfName})
	}
	_, _ = ask(c.Socket, deleteTimeout, request, nil)
	return nil
}

// Status reports whether Add can work.
func Status(args *skel.CmdArgs) error {
	c, err := ParseConfig(args.StdinData)
	if err != nil {
		return err
	}
	const pluginNotAvailable = 50 // of the CNI specification
	if _, err := ask(c.Socket, deleteTimeout, wire.Request{Command: "STATUS"}, nil); err != nil {
		return types.NewError(pluginNotAvailable, "radiod does not answer", err.Error())
	}
	return nil
}
