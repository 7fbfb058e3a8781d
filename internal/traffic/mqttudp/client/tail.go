package client

import (
	"crypto/hmac"
	"crypto/md5" // which MQTT/UDP signs with
	"encoding/binary"
	"errors"
	"fmt"
)

// Tagged tail records follow the MQTT packet in a datagram. Each is a tag, the length of its content in one byte, and the content.
const (
	tagNumber    = 'n'
	tagSignature = 's'
	// recordHeader is the size of tag and length.
	recordHeader = 2
	numberBytes  = 4
	// maxRecord is the longest content, as the reference's own programs differ on longer ones.
	maxRecord = 127
)

// tailBytes returns the size of what appendTail appends.
func tailBytes(key []byte) int {
	size := recordHeader + numberBytes
	if len(key) > 0 {
		size += recordHeader + md5.Size
	}
	return size
}

// appendTail appends the packet's number, and with a key the signature of all before it.
func appendTail(packet []byte, number uint32, key []byte) []byte {
	packet = binary.BigEndian.AppendUint32(append(packet, tagNumber, numberBytes), number)
	if len(key) == 0 {
		return packet
	}
	signature := sign(packet, key)
	return append(append(packet, tagSignature, md5.Size), signature...)
}

func sign(content, key []byte) []byte {
	h := hmac.New(md5.New, key)
	h.Write(content)
	return h.Sum(nil)
}

// records calls visit with the tag, start and content of each tail record of a datagram, whose packet has the given size, until it returns false.
func records(datagram []byte, size int, visit func(tag byte, at int, content []byte) bool) error {
	for at := size; at < len(datagram); {
		if len(datagram) < at+recordHeader {
			return errors.New("its last tail record has no length")
		}
		length := int(datagram[at+1])
		next := at + recordHeader + length
		if length > maxRecord || len(datagram) < next {
			return fmt.Errorf("tail record %q says that it has %d bytes: want at most %d, and no more than follow", datagram[at], length, maxRecord)
		}
		if !visit(datagram[at], at, datagram[at+recordHeader:next]) {
			return nil
		}
		at = next
	}
	return nil
}

// checkSignature returns why a datagram, whose packet has the given size, is not signed with the key.
func checkSignature(datagram []byte, size int, key []byte) error {
	wrong := errors.New("it has no signature")
	err := records(datagram, size, func(tag byte, at int, content []byte) bool {
		if tag != tagSignature {
			return true
		}
		wrong = nil
		if !hmac.Equal(content, sign(datagram[:at], key)) {
			wrong = errors.New("its signature is of another key, or of another content")
		}
		return false
	})
	return errors.Join(err, wrong)
}

// numberOf returns the number of a datagram, whose packet has the given size; false if it has none.
func numberOf(datagram []byte, size int) (number uint32, numbered bool) {
	_ = records(datagram, size, func(tag byte, _ int, content []byte) bool {
		numbered = tag == tagNumber && len(content) == numberBytes
		if numbered {
			number = binary.BigEndian.Uint32(content)
		}
		return !numbered
	})
	return number, numbered
}
