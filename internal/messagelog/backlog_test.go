package messagelog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
)

// disk takes bytes while it has room, as a file does on a volume that fills.
type disk struct {
	content []byte
	room    int
}

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.content, d.room = append(d.content, p[:n]...), d.room-n
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func TestLinesThatADiskHasNoRoomForWaitAndAreNeverTorn(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's course
		d := &disk{}
		b := NewBacklog(d, 200)
		var taken []string
		for i := range 200 {
			if random.IntN(10) == 0 {
				d.room = random.IntN(400)
			}
			line := fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", random.IntN(60)))
			switch _, err := b.Write([]byte(line)); {
			case err == nil:
				taken = append(taken, line)
			case !errors.Is(err, ErrLost) || !errors.Is(err, syscall.ENOSPC):
				t.Fatalf("seed %d: %v; want ErrLost that says why", seed, err)
			}
		}
		d.room = 1 << 20
		if err := b.Flush(); err != nil || string(d.content) != strings.Join(taken, "") {
			t.Fatalf("seed %d: %v, the file is not the lines that were taken", seed, err)
		}
	}
}

func TestWhatIsTooMuchToWaitIsLostAndSaysSo(t *testing.T) {
	d := &disk{}
	b := NewBacklog(d, 10)
	if _, err := b.Write([]byte("12345678\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write([]byte("9\n")); !errors.Is(err, ErrLost) {
		t.Errorf("%v; want ErrLost", err)
	}
	if err := b.Flush(); err == nil || !strings.Contains(err.Error(), "9 bytes wait") {
		t.Errorf("%v; want to hear that 9 bytes wait", err)
	}
}
