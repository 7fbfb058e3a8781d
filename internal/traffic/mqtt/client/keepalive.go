package client

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/eclipse/paho.golang/paho/log"
)

// keepAlive keeps a connection alive, until it is closed or stop closes. Both libraries end a connection whose PINGRESP is late. On a slow link
// the answer may wait for minutes behind messages, which are signs of life as well. So the pings are sent here, and the libraries' are left out.
func (c *conn) keepAlive(stop <-chan struct{}, after time.Duration) {
	checks := time.NewTicker(after / 6)
	defer checks.Stop()
	pinging := make(chan struct{}, 1)
	for pinged := time.Now(); ; {
		select {
		case <-stop:
			return
		case <-c.done:
			return
		case now := <-checks.C:
			silent := now.Sub(c.watched.LastSign(now))
			if silent > 2*after {
				c.lose(fmt.Errorf("no sign of life from the broker for %v", silent.Round(time.Second)))
				return
			}
			if due := silent >= after || now.Sub(c.watched.LastWrite()) >= after; !due || now.Sub(pinged) < after {
				continue
			}
			select {
			case pinging <- struct{}{}:
				pinged = now
				go func() { // the write may wait behind a large message
					_, _ = c.Conn.Write(pingreq)
					<-pinging
				}()
			default:
			}
		}
	}
}

// pingreq is a whole PINGREQ.
var pingreq = []byte{typePingreq << 4, 0}

// typePingreq is the packet type in the upper half of a packet's first byte.
const typePingreq = 12

// lose closes the connection for a reason.
func (c *conn) lose(why error) {
	c.losing.Lock() // not mu, which a write may hold
	c.lost = why
	c.losing.Unlock()
	c.Close()
}

// pinger is the library's for MQTT 5.
type pinger struct{}

// Run implements paho.Pinger. The broker may have shortened the time (Server Keep Alive).
func (pinger) Run(ctx context.Context, c net.Conn, seconds uint16) error {
	if seconds > 0 {
		c.(*conn).keepAlive(ctx.Done(), time.Duration(seconds)*time.Second)
	}
	return nil
}

func (pinger) PacketSent()         {}
func (pinger) PacketReceived()     {}
func (pinger) PingResp()           {}
func (pinger) SetDebug(log.Logger) {}
