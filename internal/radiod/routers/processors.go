package routers

import (
	"os"
	"strconv"

	"vignette.dev/vignette/internal/clock"
)

// leaveProcessors leaves a processor to each loop of the data plane, but at most half of all. The routers' garbage collections
// would otherwise take all processors, and loops would only run at the kernel's ticks. Threads that are made later inherit it.
func leaveProcessors(loops int) {
	all, err := clock.Processors()
	if err != nil || loops == 0 || len(all) < 2 {
		return
	}
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = clock.Bind(id, all[min(loops, len(all)/2):]...) // a refusal only costs lateness, which is measured
		}
	}
}
