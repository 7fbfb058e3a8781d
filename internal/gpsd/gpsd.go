// Package gpsd serves one position by the JSON protocol of gpsd (its manual page gpsd_json(5), protocol 3.14), as far as clients
// of a receiver without satellites use it: VERSION, DEVICES, DEVICE, WATCH, POLL and TPV.
package gpsd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"vignette.dev/vignette/internal/position"
)

// Address on which gpsd's clients expect it.
const Address = "127.0.0.1:2947"

const (
	// Interval between two reports to a watching client.
	Interval = time.Second
	// maxClients at a time; further ones are closed at once.
	maxClients = 32
	// maxCommandBytes of a line from a client.
	maxCommandBytes = 4096
	// writeTimeout after which a client that does not read is closed.
	writeTimeout = 5 * time.Second
	release      = "3.22"
	driver       = "vignette"
)

// Modes of a TPV.
const (
	ModeNoFix = 1
	Mode3D    = 3
)

// TPV is a report of time, position and velocity. Without a fix it has the time alone.
type TPV struct {
	Class  string `json:"class"`
	Device string `json:"device"`
	Mode   int    `json:"mode"`
	Time   string `json:"time"`
	// LatitudeDegrees and LongitudeDegrees, WGS 84.
	LatitudeDegrees  *float64 `json:"lat,omitempty"`
	LongitudeDegrees *float64 `json:"lon,omitempty"`
	// HeightMetres above the ellipsoid. AltitudeMetres is the same: clients read one or the other.
	HeightMetres   *float64 `json:"altHAE,omitempty"`
	AltitudeMetres *float64 `json:"alt,omitempty"`
	// CourseDegrees clockwise from true north, SpeedMetresPerSecond over ground, ClimbMetresPerSecond.
	CourseDegrees        *float64 `json:"track,omitempty"`
	SpeedMetresPerSecond *float64 `json:"speed,omitempty"`
	ClimbMetresPerSecond *float64 `json:"climb,omitempty"`
}

// NewTPV is the report of a place at a time; without a fix if the place is not known.
func NewTPV(device string, at time.Time, place position.Place, known bool) TPV {
	tpv := TPV{Class: "TPV", Device: device, Mode: ModeNoFix, Time: FormatTime(at)}
	if !known {
		return tpv
	}
	tpv.Mode = Mode3D
	up, level := math.Sincos(place.Elevation * math.Pi / 180)
	tpv.LatitudeDegrees, tpv.LongitudeDegrees = &place.Latitude, &place.Longitude
	tpv.HeightMetres, tpv.AltitudeMetres = &place.Altitude, &place.Altitude
	tpv.CourseDegrees, tpv.SpeedMetresPerSecond, tpv.ClimbMetresPerSecond = rounded(place.Azimuth), rounded(place.Speed*level), rounded(place.Speed*up)
	if *tpv.CourseDegrees == 360 {
		*tpv.CourseDegrees = 0
	}
	return tpv
}

// rounded to thousandths.
func rounded(v float64) *float64 {
	v = math.Round(v*1e3) / 1e3
	return &v
}

// timeFormat is ISO 8601 with milliseconds, as gpsd writes it.
const timeFormat = "2006-01-02T15:04:05.000Z"

// FormatTime formats the time of a report.
func FormatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

// Server serves the position of one device.
type Server struct {
	// Device is the path of the device that clients see.
	Device string
	// Report returns the report for a time.
	Report func(at time.Time) TPV
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Serve serves clients of a listener until ctx ends or the listener fails. It then closes the listener and all clients.
func (s *Server) Serve(parent context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(parent)
	var clients sync.WaitGroup
	defer clients.Wait()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	defer func() {
		cancel() // before the wait, as clients may stay for ever
		listener.Close()
	}()
	room := make(chan struct{}, maxClients)
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		select {
		case room <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		clients.Go(func() {
			s.serveClient(ctx, conn)
			<-room
		})
	}
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// client is one connection.
type client struct {
	server *Server
	conn   net.Conn
	opened time.Time
	// watch is what the client asked for; only the connection's goroutine uses it.
	watch watch
}

// watch is the WATCH object. Only JSON is served.
type watch struct {
	Class  string `json:"class"`
	Enable bool   `json:"enable"`
	JSON   bool   `json:"json"`
	NMEA   bool   `json:"nmea"`
	Raw    int    `json:"raw"`
	Scaled bool   `json:"scaled"`
	Timing bool   `json:"timing"`
	Split  bool   `json:"split24"`
	PPS    bool   `json:"pps"`
}

// serveClient answers commands, and reports at each whole second while the client watches.
func (s *Server) serveClient(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	c := &client{server: s, conn: conn, opened: s.now(), watch: watch{Class: "WATCH"}}
	if c.write(version()) != nil {
		return
	}
	commands := readCommands(ctx, conn)
	next := time.NewTimer(untilNext(s.now()))
	defer next.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case line, open := <-commands:
			if !open || c.execute(line) != nil {
				return
			}
		case <-next.C:
			at := s.now()
			next.Reset(untilNext(at))
			second := at.Truncate(Interval)
			if second.Equal(last) {
				continue // the clock is slewed, or was set back a little
			}
			last = second
			if c.watch.Enable && c.write(s.Report(second)) != nil {
				return
			}
		}
	}
}

// untilNext is the time to the next whole second.
func untilNext(now time.Time) time.Duration { return now.Truncate(Interval).Add(Interval).Sub(now) }

// readCommands reads a client's commands, until the connection or ctx ends.
func readCommands(ctx context.Context, conn net.Conn) <-chan string {
	commands := make(chan string)
	go func() {
		defer close(commands)
		lines := bufio.NewScanner(conn)
		lines.Buffer(nil, maxCommandBytes)
		lines.Split(splitCommands)
		for lines.Scan() {
			select {
			case commands <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return commands
}

// splitCommands splits at the ends of lines and at semicolons, with which gpsd's commands end.
func splitCommands(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := strings.IndexAny(string(data), ";\r\n"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// execute answers one command.
func (c *client) execute(text string) error {
	name, argument, has := strings.Cut(strings.TrimSpace(text), "=")
	switch {
	case name == "":
		return nil
	case name == "?VERSION":
		return c.write(version())
	case name == "?DEVICES":
		return c.write(c.devices())
	case name == "?DEVICE":
		return c.write(c.device())
	case name == "?POLL":
		return c.write(c.poll())
	case name == "?WATCH" && !has:
		return c.write(c.watch)
	case name == "?WATCH":
		return c.setWatch(argument)
	}
	return c.refuse("Unrecognized request '" + bounded(name) + "'")
}

// setWatch changes what the client watches. Members that it leaves out stay as they are, except enable, which is then true.
func (c *client) setWatch(argument string) error {
	wanted := c.watch
	wanted.Enable = true
	if err := json.Unmarshal([]byte(argument), &wanted); err != nil {
		return c.refuse("Invalid WATCH: want a JSON object")
	}
	c.watch = watch{Class: "WATCH", Enable: wanted.Enable, JSON: wanted.Enable}
	if !c.watch.Enable {
		return c.write(c.watch)
	}
	return c.write(c.devices(), c.watch)
}

func (c *client) refuse(message string) error {
	return c.write(map[string]string{"class": "ERROR", "message": message})
}

func bounded(text string) string { return text[:min(len(text), 64)] }

func version() any {
	return struct {
		Class   string `json:"class"`
		Release string `json:"release"`
		Rev     string `json:"rev"`
		Major   int    `json:"proto_major"`
		Minor   int    `json:"proto_minor"`
	}{"VERSION", release, driver, 3, 14}
}

// device is the DEVICE object.
type device struct {
	Class     string  `json:"class"`
	Path      string  `json:"path"`
	Driver    string  `json:"driver"`
	Activated string  `json:"activated"`
	Flags     int     `json:"flags"`
	Native    int     `json:"native"`
	Cycle     float64 `json:"cycle"`
}

func (c *client) device() device {
	const seenGPS = 1
	return device{Class: "DEVICE", Path: c.server.Device, Driver: driver, Activated: FormatTime(c.opened), Flags: seenGPS, Cycle: Interval.Seconds()}
}

func (c *client) devices() any {
	return struct {
		Class   string   `json:"class"`
		Devices []device `json:"devices"`
	}{"DEVICES", []device{c.device()}}
}

// poll is the answer to POLL, with a report for now.
func (c *client) poll() any {
	now := c.server.now()
	return struct {
		Class  string `json:"class"`
		Time   string `json:"time"`
		Active int    `json:"active"`
		TPV    []TPV  `json:"tpv"`
		GST    []any  `json:"gst"`
		SKY    []any  `json:"sky"`
	}{"POLL", FormatTime(now), 1, []TPV{c.server.Report(now)}, []any{}, []any{}}
}

// write sends objects, each as one line.
func (c *client) write(objects ...any) error {
	var text []byte
	for _, object := range objects {
		line, err := json.Marshal(object)
		if err != nil {
			return err
		}
		text = append(append(text, line...), "\r\n"...)
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.conn.Write(text)
	return err
}
