package radio

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// sessionFile has the niceness of the process's session, where the kernel schedules sessions as groups: sched(7), the autogroup feature. A thread's niceness then
// says who goes first among those of its session only, and all of them together have the weight of the session's. For processes in a control group of the cpu
// controller, such as containers', it means nothing.
const sessionFile = "/proc/self/autogroup"

// raiseSession gives the process's session the niceness of its loops, and tells how to take it back.
func raiseSession(options Options) (lower func(), err error) {
	nothing := func() {}
	text, err := os.ReadFile(sessionFile)
	_, value, ok := bytes.Cut(text, []byte(" nice "))
	if err != nil || !ok || options.Nice == 0 {
		return nothing, nil // no groups, or the one of the kernel's first process
	}
	before, err := strconv.Atoi(string(bytes.TrimSpace(value)))
	if err != nil {
		return nothing, fmt.Errorf("%s has %q: want a niceness", sessionFile, text)
	}
	if err := setSessionNice(loopNice(options)); err != nil {
		return nothing, err
	}
	return func() { _ = setSessionNice(before) }, nil
}

func setSessionNice(nice int) error {
	return os.WriteFile(sessionFile, strconv.AppendInt(nil, int64(nice), 10), 0)
}
