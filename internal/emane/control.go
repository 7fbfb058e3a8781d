package emane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/proto"

	"vignette.dev/vignette/internal/emane/emanepb"
)

// maxResponse is the size limit of the control port's responses, bytes.
const maxResponse = 64 << 20

// Control is a connection to an EMANE process's control port. It is for one goroutine.
type Control struct {
	connection net.Conn
	sequence   uint32
	timeout    time.Duration
}

// NewControl uses a connection to a control port; timeout is for each request.
func NewControl(connection net.Conn, timeout time.Duration) *Control {
	return &Control{connection: connection, timeout: timeout}
}

// Close the connection.
func (c *Control) Close() error { return c.connection.Close() }

// Layer of a NEM.
type Layer int

// The layers by their numbers on the control port.
const (
	MAC       = Layer(emanepb.Component_MAC)
	PHY       = Layer(emanepb.Component_PHY)
	Shim      = Layer(emanepb.Component_SHIM)
	Transport = Layer(emanepb.Component_TRANSPORT)
)

// Component of a NEM, whose BuildID requests name.
type Component struct {
	BuildID uint32
	Layer   Layer
	Plugin  string
}

// NEM of an EMANE process.
type NEM struct {
	ID         int
	Components []Component
}

// Emulator is the build id of components that belong to no NEM.
const Emulator uint32 = 0

// Manifest lists the process's NEMs.
func (c *Control) Manifest() (nems []NEM, err error) {
	answer, err := c.query(&emanepb.Query{Kind: emanepb.Query_MANIFEST.Enum()})
	for _, n := range answer.GetManifest().GetNems() {
		nem := NEM{ID: int(n.GetId())}
		for _, part := range n.GetComponents() {
			nem.Components = append(nem.Components, Component{part.GetBuildId(), Layer(part.GetLayer()), part.GetPlugin()})
		}
		nems = append(nems, nem)
	}
	return nems, err
}

// Statistics returns a component's statistics by name; without names all. Values are int64, uint64, float64,
// string or bool.
func (c *Control) Statistics(buildID uint32, names ...string) (map[string]any, error) {
	answer, err := c.query(&emanepb.Query{Kind: emanepb.Query_STATISTICS.Enum(), Statistics: &emanepb.Selection{BuildId: &buildID, Names: names}})
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, s := range answer.GetStatistics().GetStatistics() {
		if all[s.GetName()], err = valueOf(s.GetValue()); err != nil {
			return nil, fmt.Errorf("control port: statistic %s: %w", s.GetName(), err)
		}
	}
	return all, nil
}

// Configuration returns a component's parameters by name; without names all. Some have several values, or none.
func (c *Control) Configuration(buildID uint32, names ...string) (map[string][]any, error) {
	answer, err := c.query(&emanepb.Query{Kind: emanepb.Query_PARAMETERS.Enum(), Parameters: &emanepb.Selection{BuildId: &buildID, Names: names}})
	if err != nil {
		return nil, err
	}
	all := map[string][]any{}
	for _, p := range answer.GetParameters().GetParameters() {
		if all[p.GetName()], err = valuesOf(p.GetValues()); err != nil {
			return nil, fmt.Errorf("control port: parameter %s: %w", p.GetName(), err)
		}
	}
	return all, nil
}

// Table of statistics: rows of values by the labels of their columns.
type Table struct {
	Labels []string
	Rows   [][]any
}

// Tables returns a component's tables by name; without names all.
func (c *Control) Tables(buildID uint32, names ...string) (map[string]Table, error) {
	answer, err := c.query(&emanepb.Query{Kind: emanepb.Query_TABLES.Enum(), Tables: &emanepb.Selection{BuildId: &buildID, Names: names}})
	if err != nil {
		return nil, err
	}
	all := map[string]Table{}
	for _, t := range answer.GetTables().GetTables() {
		table := Table{Labels: t.GetLabels()}
		for _, r := range t.GetRows() {
			row, err := valuesOf(r.GetValues())
			if err != nil {
				return nil, fmt.Errorf("control port: table %s: %w", t.GetName(), err)
			}
			table.Rows = append(table.Rows, row)
		}
		all[t.GetName()] = table
	}
	return all, nil
}

// Configure changes parameters of a running component. Values are uint64, float32, float64 or bool, exactly
// as the parameter's type.
func (c *Control) Configure(buildID uint32, parameters map[string]any) error {
	update := &emanepb.Update{Kind: emanepb.Update_PARAMETERS.Enum(), Parameters: &emanepb.Parameters{BuildId: &buildID}}
	for name, v := range parameters {
		value, err := encoded(v)
		if err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
		update.Parameters.Parameters = append(update.Parameters.Parameters, &emanepb.Parameter{Name: &name, Values: []*emanepb.Value{value}})
	}
	_, err := c.request(&emanepb.Request{Kind: emanepb.Request_UPDATE.Enum(), Update: update})
	return err
}

func (c *Control) query(q *emanepb.Query) (*emanepb.Answer, error) {
	response, err := c.request(&emanepb.Request{Kind: emanepb.Request_QUERY.Enum(), Query: q})
	return response.GetAnswer(), err
}

func (c *Control) request(request *emanepb.Request) (*emanepb.Response, error) {
	c.sequence++
	request.Sequence = new(c.sequence)
	response := &emanepb.Response{}
	err := c.connection.SetDeadline(time.Now().Add(c.timeout))
	if err == nil {
		err = WriteMessage(c.connection, request)
	}
	if err == nil {
		err = ReadMessage(c.connection, response)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("control port: %w", err)
	case response.GetRequest() != c.sequence:
		return nil, fmt.Errorf("control port: answer to request %d, want %d", response.GetRequest(), c.sequence)
	case response.GetKind() == emanepb.Response_ERROR:
		return nil, fmt.Errorf("control port: EMANE refuses the request: %s", response.GetFailure().GetDescription())
	}
	return response, nil
}

// WriteMessage writes a message of the control port behind its length.
func WriteMessage(w io.Writer, m proto.Message) error {
	framed, err := proto.MarshalOptions{}.MarshalAppend(make([]byte, 4), m)
	if err != nil {
		return fmt.Errorf("message that cannot be written: %w", err)
	}
	binary.BigEndian.PutUint32(framed, uint32(len(framed)-4))
	_, err = w.Write(framed)
	return err
}

// ReadMessage reads a message of the control port behind its length.
func ReadMessage(r io.Reader, m proto.Message) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxResponse {
		return fmt.Errorf("message of %d bytes, want at most %d", n, maxResponse)
	}
	message := make([]byte, n)
	if _, err := io.ReadFull(r, message); err != nil {
		return err
	}
	if err := proto.Unmarshal(message, m); err != nil {
		return fmt.Errorf("message of %d bytes that cannot be read: %w", n, err)
	}
	return nil
}

func valuesOf(some []*emanepb.Value) (all []any, err error) {
	for _, v := range some {
		one, err := valueOf(v)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func valueOf(v *emanepb.Value) (any, error) {
	switch {
	case v.Uint32 != nil:
		return uint64(*v.Uint32), nil
	case v.Int32 != nil:
		return int64(*v.Int32), nil
	case v.Uint64 != nil:
		return *v.Uint64, nil
	case v.Int64 != nil:
		return *v.Int64, nil
	case v.Float != nil:
		return float64(*v.Float), nil
	case v.Double != nil:
		return *v.Double, nil
	case v.Boolean != nil:
		return *v.Boolean, nil
	case v.Text != nil:
		return *v.Text, nil
	}
	return nil, errors.New("value without a value")
}

func encoded(v any) (*emanepb.Value, error) {
	switch v := v.(type) {
	case uint64:
		return &emanepb.Value{Kind: emanepb.Value_UINT64.Enum(), Uint64: &v}, nil
	case float32:
		return &emanepb.Value{Kind: emanepb.Value_FLOAT.Enum(), Float: &v}, nil
	case float64:
		return &emanepb.Value{Kind: emanepb.Value_DOUBLE.Enum(), Double: &v}, nil
	case bool:
		return &emanepb.Value{Kind: emanepb.Value_BOOLEAN.Enum(), Boolean: &v}, nil
	default:
		return nil, fmt.Errorf("%T: want uint64, float32, float64 or bool", v)
	}
}
