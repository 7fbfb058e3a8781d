package emaned

import (
	"os"
	"testing"
	"time"

	"vignette.dev/vignette/internal/emane/emanetest"
	"vignette.dev/vignette/internal/radio"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/internal/radio/tdma"
)

func TestAProcessThatDidNotAnswerForAWhileWasLate(t *testing.T) {
	if err := radiotest.Missing(); err != nil {
		t.Skip(err)
	}
	namespace, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.Close()
	fake, err := emanetest.Listen(1, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	p := &pod{Driver: &Driver{}, namespace: namespace}
	one := &process{nem: 1, control: fake.Address(), schedule: &tdma.Schedule{}, rate: 1e6}
	scrape := func(answers bool) {
		t.Helper()
		if _, err := p.scrapeOne(&Input{}, one); (err == nil) != answers {
			t.Fatalf("it answers: %v, want %t", err, answers)
		}
	}
	scrape(true)
	told, before := one.schedule, one.lastRead
	_ = one.connection.Close()
	scrape(false)
	time.Sleep(50 * time.Millisecond)
	fake.Count("numTxSlotErrorMissed", 3)
	scrape(true)
	late, missed := p.Late(), p.MissedSlots(1)
	if len(late) != 1 || late[0].From < before || late[0].To != one.lastRead || late[0].Worst < int64(50*time.Millisecond) {
		t.Errorf("late %+v; want 50 ms and more between %d and %d", late, before, one.lastRead)
	}
	if want := (radio.Interval{From: before, To: one.lastRead, Count: 3}); len(missed) != 1 || missed[0] != want {
		t.Errorf("missed slots %+v; want %+v", missed, want)
	}
	if one.schedule != told || one.rate != 1e6 {
		t.Error("its schedule is forgotten, and would be sent again")
	}
	scrape(true)
	if again := p.Late(); len(again) > 0 {
		t.Errorf("late %+v once it answers again", again)
	}
}

func TestAProcessThatHasNotAnsweredYetIsNotLate(t *testing.T) {
	one := &process{nem: 1, control: "127.0.0.1:1"}
	namespace, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.Close()
	p := &pod{Driver: &Driver{}, namespace: namespace}
	if _, err := p.scrapeOne(&Input{}, one); err == nil {
		t.Fatal("it answers")
	}
	if one.silentSince != 0 {
		t.Error("its start counts as lateness")
	}
}
