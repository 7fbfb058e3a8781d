package testport

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// established is the state of a connection in /proc/net/tcp, keepAlive the timer of an idle one.
const established, keepAlive = 0x01, 0x02

// KeepAlive is when TCP's keep-alive of an idle connection with these ports is due next; 0 if it is off. A port of 0 is any.
func KeepAlive(t testing.TB, local, remote int) (due time.Duration) {
	t.Helper()
	found := false
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // without IPv6
		}
		for line := range strings.Lines(string(text)) {
			var slot, from, to, state, queued, unread, timer, ticks int
			var own, peer string
			line = strings.ReplaceAll(line, ":", " ")
			if n, _ := fmt.Sscanf(line, "%d %s %x %s %x %x %x %x %x %x", &slot, &own, &from, &peer, &to, &state, &queued, &unread, &timer, &ticks); n < 10 || state != established {
				continue
			}
			if local != 0 && local != from || remote != 0 && remote != to {
				continue
			}
			found = true
			if timer == keepAlive {
				due = max(due, time.Duration(ticks)*time.Second/100)
			}
		}
	}
	if !found {
		t.Fatalf("no connection from port %d to port %d", local, remote)
	}
	return due
}
