package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"vignette.dev/vignette/internal/appinstance"
	"vignette.dev/vignette/internal/clock"
	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/internal/traffic/mqttsn/wire"
)

// ForwarderConfig is the configuration of a forwarder (5.5). Clients use it like a gateway. It passes their packets, encapsulated, to the gateway.
type ForwarderConfig struct {
	// Listen is the address and UDP port for clients, such as :1885.
	Listen string `json:"listen"`
	// Gateway is host:port of the gateway.
	Gateway string `json:"gateway"`
}

// Validate returns what is wrong with a configuration, if anything.
func (c ForwarderConfig) Validate() error {
	if _, err := (mqttsn.GatewayConfig{Listen: c.Listen}).Address(); err != nil || c.Listen == "" {
		return fmt.Errorf("listen is %q: want address:port or :port", c.Listen)
	}
	if host, port, err := net.SplitHostPort(c.Gateway); err != nil || host == "" || port == "" {
		return fmt.Errorf("gateway %q: want host:port", c.Gateway)
	}
	return nil
}

// Forwarder forwards packets. It has no state of clients: the wireless node id of the encapsulation is the client's address and port.
type Forwarder struct {
	clients, gateway *net.UDPConn
}

// ServeForwarder runs the forwarder of a configuration file until ctx ends.
func ServeForwarder(ctx context.Context, path string) error {
	config, err := appinstance.ReadConfig[ForwarderConfig](path)
	if err != nil {
		return err
	}
	for {
		f, err := NewForwarder(config)
		if err == nil {
			return f.Run(ctx)
		}
		// The radio's interface or the gateway's name may not exist yet.
		fmt.Fprintln(os.Stderr, "mqtt-sn-forwarder:", err)
		if !clock.Pause(ctx, time.Second) {
			return nil
		}
	}
}

// NewForwarder opens the forwarder's ports.
func NewForwarder(config ForwarderConfig) (*Forwarder, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	listen, _ := (mqttsn.GatewayConfig{Listen: config.Listen}).Address()
	to, err := net.ResolveUDPAddr("udp4", config.Gateway)
	if err != nil {
		return nil, err
	}
	clients, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(listen))
	if err != nil {
		return nil, err
	}
	gateway, err := net.DialUDP("udp4", nil, to)
	if err != nil {
		clients.Close()
		return nil, err
	}
	_ = clients.SetReadBuffer(receiveBuffer)
	_ = gateway.SetReadBuffer(receiveBuffer)
	return &Forwarder{clients: clients, gateway: gateway}, nil
}

// Address returns the address for clients.
func (f *Forwarder) Address() netip.AddrPort { return f.clients.LocalAddr().(*net.UDPAddr).AddrPort() }

// Run forwards packets until ctx ends.
func (f *Forwarder) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		f.clients.Close()
		f.gateway.Close()
	})
	defer stop()
	back := make(chan struct{})
	go func() {
		defer close(back)
		f.toClients()
	}()
	f.toGateway()
	<-back
	return nil
}

func (f *Forwarder) toGateway() {
	buffer := make([]byte, wire.MaxDatagram+1)
	for {
		n, from, err := f.clients.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		node := binary.BigEndian.AppendUint16(from.Addr().Unmap().AsSlice(), from.Port())
		b, err := wire.AppendForward(nil, wire.Forward{Node: node, Packet: buffer[:n]})
		if err == nil {
			_, _ = f.gateway.Write(b) // the client repeats what is lost
		}
	}
}

func (f *Forwarder) toClients() {
	buffer := make([]byte, wire.MaxDatagram+1)
	for {
		n, err := f.gateway.Read(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the gateway is not up
		}
		p, err := wire.ParseForward(buffer[:n])
		if err != nil || len(p.Node) != net.IPv4len+2 {
			continue
		}
		address, _ := netip.AddrFromSlice(p.Node[:net.IPv4len])
		_, _ = f.clients.WriteToUDPAddrPort(p.Packet, netip.AddrPortFrom(address, binary.BigEndian.Uint16(p.Node[net.IPv4len:])))
	}
}
