package nodes

import (
	"context"
	"regexp"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/operators/experiment/scope"
)

// Console reads the end of a container's log. It may be nil.
type Console func(ctx context.Context, namespace, pod, container string) (string, error)

const (
	// consoleLines and consoleBytes limit the end of a guest's console in the message of a failure.
	consoleLines, consoleBytes = 8, 600
	// consoleTimeout is the time for the kubelet's answer.
	consoleTimeout = 5 * time.Second
)

// Tail is the end of a guest's console for the message of a failure. It is empty for pods and if it cannot be read.
func (c Console) Tail(ctx context.Context, s *scope.Scope, node string) string {
	n, _ := s.Topology.Node(node)
	launcher := s.Pods[node]
	if !n.IsVM() || launcher == nil || c == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	text, err := c(ctx, launcher.Namespace, launcher.Name, render.GuestLogContainer)
	if err != nil {
		log.FromContext(ctx).Info("the console of a guest could not be read", "node", node, "error", err.Error())
		return ""
	}
	if lines := lastLines(text); lines != "" {
		return "; its console's last lines: " + lines
	}
	return "; its console is empty"
}

// lastLines are the last lines of a console without control sequences, joined by " | ".
func lastLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(controlSequences.ReplaceAllString(text, ""), "\n") {
		if line = strings.TrimSpace(strings.Map(printable, line)); line != "" {
			lines = append(lines, line)
		}
	}
	joined := strings.Join(lines[max(len(lines)-consoleLines, 0):], " | ")
	if len(joined) > consoleBytes {
		joined = "…" + strings.ToValidUTF8(joined[len(joined)-consoleBytes:], "")
	}
	return joined
}

// controlSequences matches control sequences of terminals (ECMA-48), which boot loaders and systemd write.
var controlSequences = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]`)

func printable(r rune) rune {
	if r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return -1
}

// NewConsole returns a function that reads the end of a launcher container's log.
func NewConsole(kube kubernetes.Interface) Console {
	return func(ctx context.Context, namespace, pod, container string) (string, error) {
		options := &corev1.PodLogOptions{Container: container, TailLines: ptr.To(int64(4 * consoleLines))}
		text, err := kube.CoreV1().Pods(namespace).GetLogs(pod, options).DoRaw(ctx)
		return string(text), err
	}
}
