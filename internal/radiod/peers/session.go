package peers

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/flynn/noise"
	"golang.org/x/time/rate"
)

// KeyLength of X25519 keys in bytes.
const KeyLength = 32

// Key is a public key.
type Key [KeyLength]byte

// PrivateKey proves a radiod's identity.
type PrivateKey struct{ pair noise.DHKey }

var suite = noise.NewCipherSuite(noise.DH25519, noise.CipherChaChaPoly, noise.HashBLAKE2s)

// prologue makes handshakes of other protocols with the same keys fail.
var prologue = []byte("vignette radiod peers 1")

// NewPrivateKey makes a key.
func NewPrivateKey() (PrivateKey, error) {
	pair, err := noise.DH25519.GenerateKeypair(rand.Reader)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("X25519 key: %w", err)
	}
	return PrivateKey{pair}, nil
}

// ParsePrivateKey reads the 32 bytes that Bytes returned.
func ParsePrivateKey(b []byte) (PrivateKey, error) {
	if len(b) != KeyLength {
		return PrivateKey{}, fmt.Errorf("X25519 key: it has %d bytes; want %d", len(b), KeyLength)
	}
	base := make([]byte, KeyLength)
	base[0] = 9 // the base point (RFC 7748)
	public, err := noise.DH25519.DH(b, base)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("X25519 key: %w", err)
	}
	return PrivateKey{noise.DHKey{Private: append([]byte(nil), b...), Public: public}}, nil
}

// Bytes of the private key, to be kept secret.
func (k PrivateKey) Bytes() []byte { return k.pair.Private }

// Public part of the key.
func (k PrivateKey) Public() Key { return Key(k.pair.Public) }

// The kinds of datagrams.
const (
	datagramInitiation = 1 // kind, Noise message with the sender's index
	datagramResponse   = 2 // kind, receiver's index, Noise message with the sender's index
	datagramData       = 3 // kind, receiver's index, counter, ciphertext

	dataHeader = 1 + 4 + 8
	tagLength  = 16
)

// session is the result of a handshake.
type session struct {
	peer          *Peer
	remote        uint32 // the peer's index of the session
	send, receive noise.Cipher
	counter       atomic.Uint64
	// Fields of the reader.
	window    window
	assembly  assembler
	createdAt int64
	confirmed bool
}

func newSession(peer *Peer, remote []byte, send, receive *noise.CipherState, now int64) *session {
	return &session{peer: peer, remote: binary.BigEndian.Uint32(remote), send: send.Cipher(), receive: receive.Cipher(), createdAt: now}
}

// seal encrypts a plaintext into a datagram, in out's memory.
func (s *session) seal(out, plaintext []byte) []byte {
	counter := s.counter.Add(1) - 1
	out = append(out[:0], datagramData)
	out = binary.BigEndian.AppendUint32(out, s.remote)
	out = binary.BigEndian.AppendUint64(out, counter)
	return s.send.Encrypt(out, counter, out[:dataHeader], plaintext)
}

var errReplayed = errors.New("datagram: it was replayed, or is too old to tell")

// open decrypts a datagram, in out's memory.
func (s *session) open(out, datagram []byte) ([]byte, error) {
	counter := binary.BigEndian.Uint64(datagram[5:])
	plaintext, err := s.receive.Decrypt(out[:0], counter, datagram[:dataHeader], datagram[dataHeader:])
	if err != nil {
		return nil, err
	}
	next := s.window.next
	if !s.window.accept(counter) { // only authentic datagrams move the window
		return nil, errReplayed
	}
	if counter < next { // overtaken, and counted as missing before
		s.peer.missed.Add(-1)
	} else {
		s.peer.missed.Add(int64(counter - next)) //nolint:gosec // counters are far from wrapping
	}
	return plaintext, nil
}

// initiation is a handshake that this host has begun.
type initiation struct {
	state *noise.HandshakeState
	local uint32
	begun int64
}

func (p *Peers) handshake(initiator bool, remote *Key) (*noise.HandshakeState, error) {
	config := noise.Config{CipherSuite: suite, Pattern: noise.HandshakeIK, Initiator: initiator, Prologue: prologue, StaticKeypair: p.Key.pair}
	if remote != nil {
		config.PeerStatic = remote[:]
	}
	return noise.NewHandshakeState(config)
}

// initiate begins a handshake with a peer; the lock is held.
func (p *Peers) initiate(peer *Peer, now int64) error {
	state, err := p.handshake(true, &peer.key)
	if err != nil {
		return err
	}
	i := &initiation{state: state, local: p.freeIndex(), begun: now}
	datagram, _, _, err := state.WriteMessage([]byte{datagramInitiation}, binary.BigEndian.AppendUint32(nil, i.local))
	if err != nil {
		return err
	}
	peer.handshake = i
	p.write(peer, datagram)
	return nil
}

// limiterOf is for the handshakes that come from an address: whoever has another one keeps no peer from connecting.
func (p *Peers) limiterOf(from netip.AddrPort) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, peer := range p.peers {
		if peer.address.Addr().Unmap() == from.Addr().Unmap() {
			return peer.handshakes
		}
	}
	return p.strangers
}

// respond answers a handshake of a peer with a known key.
func (p *Peers) respond(datagram []byte, from netip.AddrPort, now int64) error {
	if !p.limiterOf(from).AllowN(time.Unix(0, now), 1) {
		return errors.New("handshake: too many a second")
	}
	state, err := p.handshake(false, nil)
	if err != nil {
		return err
	}
	payload, _, _, err := state.ReadMessage(nil, datagram[1:])
	if err != nil {
		return fmt.Errorf("handshake: it is not for this host's key: %w", err)
	}
	if len(payload) != 4 {
		return fmt.Errorf("handshake: its payload has %d bytes; want 4", len(payload))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	peer := p.byKey[Key(state.PeerStatic())]
	if peer == nil || peer.initiator {
		return errors.New("handshake: its key belongs to no peer that may begin one")
	}
	local := p.freeIndex()
	answer := binary.BigEndian.AppendUint32([]byte{datagramResponse}, binary.BigEndian.Uint32(payload))
	answer, receive, send, err := state.WriteMessage(answer, binary.BigEndian.AppendUint32(nil, local))
	if err != nil {
		return err
	}
	// It replaces the session before only when the peer has used it, because a handshake can be replayed.
	p.sessions[local] = newSession(peer, payload, send, receive, now)
	p.write(peer, answer)
	return nil
}

// complete takes the answer to a handshake.
func (p *Peers) complete(datagram []byte, now int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	local := binary.BigEndian.Uint32(datagram[1:])
	for _, peer := range p.peers {
		i := peer.handshake
		if i == nil || i.local != local {
			continue
		}
		payload, send, receive, err := i.state.ReadMessage(nil, datagram[5:])
		if err != nil {
			return fmt.Errorf("answer to a handshake with %s: it is not authentic: %w", peer.host, err)
		}
		if len(payload) != 4 {
			return fmt.Errorf("answer to a handshake with %s: its payload has %d bytes; want 4", peer.host, len(payload))
		}
		peer.handshake = nil
		peer.current = newSession(peer, payload, send, receive, now)
		peer.current.confirmed = true
		p.sessions[local] = peer.current
		return nil
	}
	return errors.New("answer to a handshake that was not begun")
}

// freeIndex returns an unused index; the lock is held.
func (p *Peers) freeIndex() uint32 {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		index := binary.BigEndian.Uint32(b[:])
		if p.sessions[index] == nil {
			return index
		}
	}
}
