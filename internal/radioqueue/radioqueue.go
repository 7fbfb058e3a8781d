// Package radioqueue lets apps ask how many frames wait at their node's radios (cross-layer). radiod listens
// in each node's network namespace at an abstract Unix socket. An app needs no capability to reach it, and
// nothing goes over a network. For each line that the app writes, radiod answers one line of JSON, a Report.
//
// radiod reads the queues at most every 10 ms; earlier questions get the same answer. It serves 64
// connections of a node at once.
package radioqueue

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"
)

// Address of the socket, as Go and socat write it. In Linux the name begins with a NUL instead of @.
const Address = "@vignette/radio-queue"

// Report covers all radios of a node.
type Report struct {
	Networks []Network `json:"networks"`
}

// Network is one radio's part of a Report.
type Network struct {
	// Network of the radio, by its name in the experiment.
	Network string `json:"network"`
	// QueueFrames is the number of the node's frames that wait or are under way: vignette_radio_queue_frames.
	QueueFrames int `json:"queueFrames"`
}

// Most is the largest queue of the radios; 0 without any.
func (r Report) Most() int {
	most := 0
	for _, n := range r.Networks {
		most = max(most, n.QueueFrames)
	}
	return most
}

const (
	// maxConnections bounds a node's connections, freshness the age of an answer, and maxQuestion the bytes
	// of a question.
	maxConnections = 64
	freshness      = 10 * time.Millisecond
	maxQuestion    = 64
	// writeTimeout ends connections of clients that do not read their answers.
	writeTimeout = time.Second
)

// Server answers the apps of one node.
type Server struct {
	listener net.Listener
	look     func() Report
	wait     sync.WaitGroup

	mu          sync.Mutex
	connections map[net.Conn]bool
	closed      bool
	answer      []byte
	looked      time.Time
}

// Serve answers at a listener, which Close closes. look is called from one goroutine at a time.
func Serve(listener net.Listener, look func() Report) *Server {
	s := &Server{listener: listener, look: look, connections: map[net.Conn]bool{}}
	s.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if !s.admit(conn) {
				_ = conn.Close()
				continue
			}
			s.wait.Go(func() { s.serve(conn) })
		}
	})
	return s
}

func (s *Server) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.connections) >= maxConnections {
		return false
	}
	s.connections[conn] = true
	return true
}

func (s *Server) serve(conn net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.connections, conn)
		s.mu.Unlock()
		_ = conn.Close()
	}()
	questions := bufio.NewReaderSize(conn, maxQuestion)
	for {
		if _, err := questions.ReadSlice('\n'); err != nil {
			return
		}
		answer, err := s.current()
		if err != nil {
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only on a closed connection
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// current returns the answer, which is never changed afterwards.
func (s *Server) current() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.looked) < freshness {
		return s.answer, nil
	}
	text, err := json.Marshal(s.look())
	if err != nil {
		return nil, err
	}
	s.answer, s.looked = append(text, '\n'), time.Now()
	return s.answer, nil
}

// Close ends the server and all its connections.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for conn := range s.connections {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// Client asks radiod. It reconnects when needed, and is for one goroutine.
type Client struct {
	// Address of the socket; the constant Address by default.
	Address string
	conn    net.Conn
	answers *bufio.Reader
}

// maxAnswer is more than a node's networks take.
const maxAnswer = 4096

var errAbsent = errors.New("radio queue: radiod does not answer")

// Ask for a report within a time. It fails if radiod is absent or does not answer.
func (c *Client) Ask(within time.Duration) (Report, error) {
	report, err := c.ask(time.Now().Add(within))
	if err != nil {
		c.Close()
	}
	return report, err
}

func (c *Client) ask(until time.Time) (report Report, err error) {
	if c.conn == nil {
		address := c.Address
		if address == "" {
			address = Address
		}
		conn, err := net.DialTimeout("unix", address, time.Until(until))
		if err != nil {
			return report, errAbsent
		}
		c.conn, c.answers = conn, bufio.NewReaderSize(conn, maxAnswer)
	}
	_ = c.conn.SetDeadline(until) // only a closed connection has none, and the next step fails
	if _, err := c.conn.Write([]byte("\n")); err != nil {
		return report, errAbsent
	}
	line, err := c.answers.ReadSlice('\n')
	if err != nil {
		return report, errAbsent
	}
	if json.Unmarshal(line, &report) != nil {
		return report, errors.New("radio queue: radiod's answer is malformed")
	}
	if len(report.Networks) == 0 {
		return report, errors.New("radio queue: the node has no radio whose queue is known")
	}
	return report, nil
}

// Close the connection, if there is one.
func (c *Client) Close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}
