// Package emanetest simulates an EMANE process's control port, for tests without EMANE.
package emanetest

import (
	"encoding/binary"
	"io"
	"math"
	"net"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"vignette.dev/vignette/internal/emane"
)

// Process of one NEM, with a transport, a MAC and a physical layer.
type Process struct {
	NEM int

	mu         sync.Mutex
	listener   net.Listener
	statistics map[string]uint64
	parameters map[string]any
}

// builds of the components, by layer.
var builds = map[emane.Layer]uint32{emane.Transport: 1, emane.MAC: 2, emane.PHY: 3}

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
	var length [4]byte
	if _, err := io.ReadFull(connection, length[:]); err != nil {
		return err
	}
	request := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(connection, request); err != nil {
		return err
	}
	response := number(nil, 1, 1)
	each(request, func(n protowire.Number, v uint64, message []byte) {
		switch n {
		case 1:
			response = number(response, 2, v)
		case 2:
			response = number(response, 3, v)
		case 3:
			response = embed(response, 4, p.query(message))
		case 4:
			p.update(message)
		}
	})
	framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(response))), response...) //nolint:gosec // short
	_, err := connection.Write(framed)
	return err
}

// The types of queries.
const (
	manifest  = 2
	statistic = 3
)

func (p *Process) query(message []byte) (answer []byte) {
	each(message, func(n protowire.Number, kind uint64, _ []byte) {
		if n != 1 {
			return
		}
		answer = number(nil, 1, kind)
		switch kind {
		case manifest:
			answer = embed(answer, 2, embed(nil, 1, p.components()))
		case statistic:
			answer = embed(answer, 4, p.counted())
		default:
			answer = embed(answer, 5, nil)
		}
	})
	return answer
}

func (p *Process) components() []byte {
	nem := number(nil, 1, uint64(p.NEM)) //nolint:gosec // a NEM id
	for layer, build := range builds {
		nem = embed(nem, 2, number(number(nil, 1, uint64(build)), 2, uint64(layer))) //nolint:gosec // a small number
	}
	return nem
}

func (p *Process) counted() (all []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, value := range p.statistics {
		all = embed(all, 2, embed(embed(nil, 1, []byte(name)), 2, number(number(nil, 1, 8), 4, value)))
	}
	return all
}

func (p *Process) update(message []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	each(message, func(n protowire.Number, _ uint64, configuration []byte) {
		if n == 2 {
			each(configuration, func(n protowire.Number, _ uint64, parameter []byte) {
				if n == 2 {
					p.set(parameter)
				}
			})
		}
	})
}

func (p *Process) set(parameter []byte) {
	name := ""
	each(parameter, func(n protowire.Number, _ uint64, part []byte) {
		if n == 1 {
			name = string(part)
			return
		}
		each(part, func(n protowire.Number, v uint64, _ []byte) {
			switch n {
			case 4:
				p.parameters[name] = v
			case 6:
				p.parameters[name] = math.Float32frombits(uint32(v)) //nolint:gosec // as it is on the wire
			case 7:
				p.parameters[name] = math.Float64frombits(v)
			case 8:
				p.parameters[name] = v != 0
			}
		})
	})
}

// each calls f for each field of a message, with its value or content.
func each(message []byte, f func(n protowire.Number, v uint64, content []byte)) {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return
		}
		message = message[size:]
		var v uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v32 uint32
			v32, size = protowire.ConsumeFixed32(message)
			v = uint64(v32)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(message)
		default:
			content, size = protowire.ConsumeBytes(message)
		}
		if size < 0 {
			return
		}
		message = message[size:]
		f(n, v, content)
	}
}

func number(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

func embed(b []byte, n protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), message)
}
