package emane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
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
	MAC       Layer = 1
	PHY       Layer = 2
	Shim      Layer = 3
	Transport Layer = 4
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

// The types of requests and responses.
const (
	requestQuery     = 1
	requestUpdate    = 2
	queryConfig      = 1
	queryManifest    = 2
	queryStatistic   = 3
	queryTable       = 4
	updateConfig     = 1
	responseError    = 3
	responseManifest = 2
	responseConfig   = 3
	configSelection  = 2
)

// Manifest lists the process's NEMs.
func (c *Control) Manifest() (nems []NEM, err error) {
	answer, err := c.query(queryManifest, nil)
	if err != nil {
		return nil, err
	}
	return parseManifest(answer)
}

// Statistics returns a component's statistics by name; without names all. Values are int64, uint64, float64,
// string or bool.
func (c *Control) Statistics(buildID uint32, names ...string) (map[string]any, error) {
	answer, err := c.query(queryStatistic, selection(buildID, names))
	if err != nil {
		return nil, err
	}
	return parseStatistics(answer)
}

// Configuration returns a component's parameters by name; without names all. Some have several values, or none.
func (c *Control) Configuration(buildID uint32, names ...string) (map[string][]any, error) {
	answer, err := c.query(queryConfig, selection(buildID, names))
	if err != nil {
		return nil, err
	}
	return parseValues(answer)
}

// Table of statistics: rows of values by the labels of their columns.
type Table struct {
	Labels []string
	Rows   [][]any
}

// Tables returns a component's tables by name; without names all.
func (c *Control) Tables(buildID uint32, names ...string) (map[string]Table, error) {
	answer, err := c.query(queryTable, selection(buildID, names))
	if err != nil {
		return nil, err
	}
	return parseTables(answer)
}

func selection(buildID uint32, names []string) []byte {
	b := appendUint(nil, 1, uint64(buildID))
	for _, n := range names {
		b = appendMessage(b, 2, []byte(n))
	}
	return b
}

// Configure changes parameters of a running component. Values are uint64, float32, float64 or bool, exactly
// as the parameter's type.
func (c *Control) Configure(buildID uint32, parameters map[string]any) error {
	b := appendUint(nil, 1, uint64(buildID))
	for name, v := range parameters {
		encoded, err := appendAny(nil, v)
		if err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
		b = appendMessage(b, 2, appendMessage(appendMessage(nil, 1, []byte(name)), 2, encoded))
	}
	update := appendMessage(appendUint(nil, 1, updateConfig), 2, b)
	_, err := c.request(appendMessage(appendUint(nil, 2, requestUpdate), 4, update))
	return err
}

// query sends a query. Its type determines the field numbers of its selection and of the answer.
func (c *Control) query(kind uint64, selected []byte) ([]byte, error) {
	query := appendUint(nil, 1, kind)
	if selected != nil {
		number := protowire.Number(kind) // statistics are field 3, tables 4
		if kind == queryConfig {
			number = configSelection
		}
		query = appendMessage(query, number, selected)
	}
	response, err := c.request(appendMessage(appendUint(nil, 2, requestQuery), 3, query))
	if err != nil {
		return nil, err
	}
	return answerOf(response, answerField(kind))
}

// answerField is the number of the field with the answer to a query.
func answerField(kind uint64) protowire.Number {
	switch kind {
	case queryManifest:
		return responseManifest
	case queryConfig:
		return responseConfig
	default:
		return protowire.Number(kind) + 1
	}
}

// answerOf returns the field of that number in the response's query.
func answerOf(response []byte, number protowire.Number) (answer []byte, err error) {
	err = fields(response, func(n protowire.Number, v value) error {
		if n != 4 {
			return nil
		}
		return fields(v.bytes, func(n protowire.Number, v value) error {
			if n == number {
				answer = v.bytes
			}
			return nil
		})
	})
	return answer, err
}

func (c *Control) request(fieldsOfRequest []byte) ([]byte, error) {
	c.sequence++
	message := append(appendUint(nil, 1, uint64(c.sequence)), fieldsOfRequest...)
	framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
	if err := c.connection.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return nil, fmt.Errorf("control port: %w", err)
	}
	if _, err := c.connection.Write(framed); err != nil {
		return nil, fmt.Errorf("control port: %w", err)
	}
	response, err := readMessage(c.connection)
	if err != nil {
		return nil, fmt.Errorf("control port: %w", err)
	}
	return response, checkResponse(response, c.sequence)
}

func readMessage(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxResponse {
		return nil, fmt.Errorf("message of %d bytes, want at most %d", n, maxResponse)
	}
	message := make([]byte, n)
	_, err := io.ReadFull(r, message)
	return message, err
}

// checkResponse returns the response's error, or an error if it answers another request.
func checkResponse(response []byte, sequence uint32) error {
	var reference, kind uint64
	var description string
	err := fields(response, func(n protowire.Number, v value) error {
		switch n {
		case 2:
			reference = v.number
		case 3:
			kind = v.number
		case 6:
			return fields(v.bytes, func(n protowire.Number, v value) error {
				if n == 2 {
					description = string(v.bytes)
				}
				return nil
			})
		}
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("control port: %w", err)
	case reference != uint64(sequence):
		return fmt.Errorf("control port: answer to request %d, want %d", reference, sequence)
	case kind == responseError:
		return fmt.Errorf("control port: EMANE refuses the request: %s", description)
	}
	return nil
}

func parseManifest(manifest []byte) (nems []NEM, err error) {
	err = fields(manifest, func(n protowire.Number, v value) error {
		if n != 1 {
			return nil
		}
		var nem NEM
		err := fields(v.bytes, func(n protowire.Number, v value) error {
			switch n {
			case 1:
				nem.ID = int(v.number)
			case 2:
				c, err := parseComponent(v.bytes)
				nem.Components = append(nem.Components, c)
				return err
			}
			return nil
		})
		nems = append(nems, nem)
		return err
	})
	return nems, err
}

func parseComponent(message []byte) (c Component, err error) {
	err = fields(message, func(n protowire.Number, v value) error {
		switch n {
		case 1:
			c.BuildID = uint32(v.number)
		case 2:
			c.Layer = Layer(v.number)
		case 3:
			c.Plugin = string(v.bytes)
		}
		return nil
	})
	return c, err
}

func parseStatistics(answer []byte) (map[string]any, error) {
	values, err := parseValues(answer)
	all := map[string]any{}
	for name, some := range values {
		all[name] = nil
		if len(some) > 0 {
			all[name] = some[len(some)-1]
		}
	}
	return all, err
}

// parseValues are the values by name of statistics, which have one each, or of parameters.
func parseValues(answer []byte) (map[string][]any, error) {
	all := map[string][]any{}
	err := fields(answer, func(n protowire.Number, v value) error {
		if n != 2 {
			return nil
		}
		var name string
		var values []any
		err := fields(v.bytes, func(n protowire.Number, v value) error {
			switch n {
			case 1:
				name = string(v.bytes)
			case 2:
				one, err := parseAny(v.bytes)
				values = append(values, one)
				return err
			}
			return nil
		})
		all[name] = values
		return err
	})
	return all, err
}

func parseTables(answer []byte) (map[string]Table, error) {
	all := map[string]Table{}
	err := fields(answer, func(n protowire.Number, v value) error {
		if n != 2 {
			return nil
		}
		name, t, err := parseTable(v.bytes)
		all[name] = t
		return err
	})
	return all, err
}

func parseTable(message []byte) (name string, t Table, err error) {
	err = fields(message, func(n protowire.Number, v value) error {
		switch n {
		case 1:
			name = string(v.bytes)
		case 2:
			var row []any
			err := fields(v.bytes, func(_ protowire.Number, v value) error {
				one, err := parseAny(v.bytes)
				row = append(row, one)
				return err
			})
			t.Rows = append(t.Rows, row)
			return err
		case 3:
			t.Labels = append(t.Labels, string(v.bytes))
		}
		return nil
	})
	return name, t, err
}

// The fields of a value on the control port, and the types that are written.
const (
	anyUint32, anyInt32, anyUint64, anyInt64                = 2, 3, 4, 5
	anyFloat, anyDouble, anyBool, anyString                 = 6, 7, 8, 9
	typeUint64, typeFloat, typeDouble, typeBoolean, typeAny = 8, 9, 10, 12, 1
)

func parseAny(message []byte) (one any, err error) {
	err = fields(message, func(n protowire.Number, v value) error {
		switch n {
		case anyUint32, anyUint64:
			one = v.number
		case anyInt32, anyInt64:
			one = protowire.DecodeZigZag(v.number)
		case anyFloat:
			one = float64(math.Float32frombits(uint32(v.number)))
		case anyDouble:
			one = math.Float64frombits(v.number)
		case anyBool:
			one = protowire.DecodeBool(v.number)
		case anyString:
			one = string(v.bytes)
		}
		return nil
	})
	if err == nil && one == nil {
		err = errors.New("value without a value")
	}
	return one, err
}

func appendAny(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case uint64:
		return appendUint(appendUint(b, typeAny, typeUint64), anyUint64, v), nil
	case float32:
		b = protowire.AppendTag(appendUint(b, typeAny, typeFloat), anyFloat, protowire.Fixed32Type)
		return protowire.AppendFixed32(b, math.Float32bits(v)), nil
	case float64:
		b = protowire.AppendTag(appendUint(b, typeAny, typeDouble), anyDouble, protowire.Fixed64Type)
		return protowire.AppendFixed64(b, math.Float64bits(v)), nil
	case bool:
		return appendUint(appendUint(b, typeAny, typeBoolean), anyBool, protowire.EncodeBool(v)), nil
	default:
		return nil, fmt.Errorf("%T: want uint64, float32, float64 or bool", v)
	}
}
