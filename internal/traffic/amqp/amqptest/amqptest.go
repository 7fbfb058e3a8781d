// Package amqptest is as much of an AMQP 0-9-1 broker as tests of slow links need: the login.
package amqptest

import (
	"encoding/binary"
	"io"
	"net"
)

// Method is a frame of channel 0 with a method (AMQP 0-9-1, 2.3.5).
func Method(class, number uint16, arguments string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{1, 0, 0}, uint32(4+len(arguments)))
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, class), number)
	return append(append(b, arguments...), 0xCE)
}

// Login lets any client log in, and offers a heartbeat in seconds. It returns the one that the client chooses.
func Login(conn net.Conn, heartbeat byte) (chosen uint16, err error) {
	if _, err := io.ReadFull(conn, make([]byte, len("AMQP\x00\x00\x09\x01"))); err != nil {
		return 0, err
	}
	start := Method(10, 10, "\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US")
	tune := Method(10, 30, "\x00\x00\x00\x02\x00\x00\x00"+string([]byte{heartbeat}))
	var answer []byte
	for _, question := range [][]byte{start, tune} {
		if _, err := conn.Write(question); err != nil {
			return 0, err
		}
		if answer, err = read(conn); err != nil {
			return 0, err
		}
	}
	if _, err := read(conn); err != nil { // connection.open
		return 0, err
	}
	_, err = conn.Write(Method(10, 41, "\x00"))
	return binary.BigEndian.Uint16(answer[10:]), err
}

// read returns the content of a frame.
func read(conn net.Conn) ([]byte, error) {
	head := make([]byte, 7)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	content := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
	_, err := io.ReadFull(conn, content)
	return content[:len(content)-1], err
}
