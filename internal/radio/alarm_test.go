package radio

import (
	"testing"
	"time"

	"vignette.dev/vignette/internal/clock"
)

func TestAnAlarmChangesTheNetworkBetweenTheFramesBeforeAndAfterIt(t *testing.T) {
	const delay = 400 * time.Millisecond // ample for what comes before the alarm, on a busy machine too
	n := newNetwork(t, &delayModel{time: int64(delay)})
	stations := newStations(t, n, 2)
	stations[0].send(t, everybody, "before")
	time.Sleep(delay / 2)
	stations[0].send(t, everybody, "under way")
	n.Schedule(clock.Monotonic()+int64(delay*3/4), func(int64, Model) (bool, int64) { return true, 0 })
	if got := stations[1].receive(t, 5*time.Second); got != "before" {
		t.Errorf("got %q; want the frame due before the alarm", got)
	}
	if got := stations[1].receive(t, delay); got != "" {
		t.Errorf("got %q, although the alarm had silenced the network", got)
	}
	if dropped := n.Snapshot(false)[0].Drops[Silent]; dropped != 1 {
		t.Errorf("%d frames dropped as silent; want 1", dropped)
	}
}

func TestAnAlarmIsNeverEarlyAndRepeatsAsItAsks(t *testing.T) {
	n := newNetwork(t, &delayModel{})
	due := clock.Monotonic() + int64(20*time.Millisecond)
	rang := make(chan int64, 10)
	want := []int64{due, due + int64(5*time.Millisecond), due} // the last one has passed already
	round := 0
	n.Schedule(due, func(now int64, _ Model) (bool, int64) {
		rang <- now
		if round++; round < len(want) {
			return false, want[round]
		}
		return false, 0
	})
	for i, least := range want {
		if now := <-rang; now < least {
			t.Errorf("alarm %d came %v early", i, time.Duration(least-now))
		}
	}
	n.Snapshot(false)
	if len(rang) != 0 {
		t.Error("the alarm rang again after it had asked for no more")
	}
}

func TestAnAlarmIsForgottenWhenTheNetworkIsConfiguredAnewOrClosed(t *testing.T) {
	for name, forget := range map[string]func(*Network) error{
		"configured": func(n *Network) error { return n.Configure(100, false, nil) },
		"scheduled": func(n *Network) error {
			n.Schedule(clock.Monotonic()+int64(time.Hour), func(int64, Model) (bool, int64) { return false, 0 })
			return nil
		},
		"closed": func(n *Network) error { n.Close(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, &delayModel{})
			rang := make(chan struct{}, 1)
			due := clock.Monotonic() + int64(time.Second)
			n.Schedule(due, func(int64, Model) (bool, int64) { rang <- struct{}{}; return false, 0 })
			if err := forget(n); err != nil {
				t.Fatal(err)
			}
			if clock.Monotonic() >= due {
				t.Skip("the machine is too busy to forget the alarm in time")
			}
			time.Sleep(time.Duration(due-clock.Monotonic()) + 50*time.Millisecond)
			n.Snapshot(false)
			if len(rang) != 0 {
				t.Error("the alarm rang after all")
			}
		})
	}
}
