// Package emanetest simulates an EMANE process's control port, for tests without EMANE.
package emanetest

import (
	"net"
	"sync"

	"vignette.dev/vignette/internal/emane"
	"vignette.dev/vignette/internal/emane/emanepb"
)

// Process of one NEM, with a transport, a MAC and a physical layer.
type Process struct {
	NEM int

	mu         sync.Mutex
	listener   net.Listener
	statistics map[string]uint64
	parameters map[string]any
}

// layers of the components, whose build ids count from 1.
var layers = []emanepb.Component_Layer{emanepb.Component_TRANSPORT, emanepb.Component_MAC, emanepb.Component_PHY}

// Listen at an address of the calling thread's network namespace.
func Listen(nem int, address string) (*Process, error) {
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, err
	}
	p := &Process{NEM: nem, listener: l, statistics: map[string]uint64{}, parameters: map[string]any{}}
	go p.serve()
	return p, nil
}

// Address of the port.
func (p *Process) Address() string { return p.listener.Addr().String() }

// Close the port.
func (p *Process) Close() error { return p.listener.Close() }

// Count sets a statistic of every component.
func (p *Process) Count(name string, value uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.statistics[name] = value
}

// Parameter returns the value set last: uint64, float32, float64 or bool; nil if it was not set.
func (p *Process) Parameter(name string) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parameters[name]
}

func (p *Process) serve() {
	for {
		connection, err := p.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			for p.answer(connection) == nil {
			}
		}()
	}
}

// answer handles one request.
func (p *Process) answer(connection net.Conn) error {
	request := &emanepb.Request{}
	if err := emane.ReadMessage(connection, request); err != nil {
		return err
	}
	response := &emanepb.Response{Request: request.Sequence, Kind: emanepb.Response_UPDATE.Enum()}
	if request.GetKind() == emanepb.Request_QUERY {
		response.Kind, response.Answer = emanepb.Response_QUERY.Enum(), p.query(request.GetQuery().GetKind())
	} else {
		p.update(request.GetUpdate().GetParameters().GetParameters())
	}
	return emane.WriteMessage(connection, response)
}

func (p *Process) query(kind emanepb.Query_Kind) *emanepb.Answer {
	switch kind {
	case emanepb.Query_MANIFEST:
		return &emanepb.Answer{Manifest: &emanepb.Manifest{Nems: []*emanepb.NEM{{Id: new(uint32(p.NEM)), Components: components()}}}} //nolint:gosec // a NEM id
	case emanepb.Query_STATISTICS:
		return &emanepb.Answer{Statistics: &emanepb.Statistics{Statistics: p.counted()}}
	default:
		return &emanepb.Answer{}
	}
}

func components() (all []*emanepb.Component) {
	for i := range layers {
		all = append(all, &emanepb.Component{BuildId: new(uint32(i + 1)), Layer: &layers[i], Plugin: new("")}) //nolint:gosec // a small number
	}
	return all
}

func (p *Process) counted() (all []*emanepb.Statistic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, count := range p.statistics {
		all = append(all, &emanepb.Statistic{Name: &name, Value: &emanepb.Value{Kind: emanepb.Value_UINT64.Enum(), Uint64: &count}})
	}
	return all
}

func (p *Process) update(parameters []*emanepb.Parameter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, parameter := range parameters {
		for _, v := range parameter.GetValues() {
			switch v.GetKind() {
			case emanepb.Value_UINT64:
				p.parameters[parameter.GetName()] = v.GetUint64()
			case emanepb.Value_FLOAT:
				p.parameters[parameter.GetName()] = v.GetFloat()
			case emanepb.Value_DOUBLE:
				p.parameters[parameter.GetName()] = v.GetDouble()
			case emanepb.Value_BOOLEAN:
				p.parameters[parameter.GetName()] = v.GetBoolean()
			}
		}
	}
}
