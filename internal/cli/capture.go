package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/signal"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/pcapng"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/safetext"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

const (
	// startTimeout for the operator to begin a capture or to apply a change.
	startTimeout = 30 * time.Second
	// drainTimeout for the last captured frames to arrive.
	drainTimeout = 20 * time.Second
	// pollInterval of conditions.
	pollInterval = 200 * time.Millisecond
)

type captureOptions struct {
	experiment, file, filter, limit string
	snapLength                      int32
	duration                        time.Duration
}

func newCapture(t *target) *cobra.Command {
	var o captureOptions
	cmd := &cobra.Command{
		Use:   "capture NODE NETWORK",
		Short: "Capture frames at a node's radio, to a file or to Wireshark",
		Long: "capture records the frames that a node of a running experiment sends to its radio and receives from it, as pcapng\n" +
			"with nanoseconds, and writes them as they arrive. It ends after --duration, at --limit, or with Ctrl-C, and then\n" +
			"prints how many frames it has and how many were dropped. The archive keeps the capture with the results of the run.\n" +
			"To capture a complete run from its start, use collect.captures of the experiment.",
		Example: "  vignette capture hq wan -w hq.pcapng\n" +
			"  vignette capture hq wan -w - | wireshark -k -i -\n" +
			"  vignette capture hq wan --filter 'tcp port 1883' --duration 30s -w - | tshark -r -\n" +
			"  vignette capture -e bft-live veh-3 wan --snaplen 96 --limit 1Gi -w veh-3.pcapng",
		Args:              captureArguments,
		ValidArgsFunction: t.completeCapture(&o.experiment),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd.CommandPath(), args, descriptor(cmd.OutOrStdout()) >= 0); err != nil {
				return err
			}
			c, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			return t.explainArchive(c.capture(cmd.Context(), args[0], args[1], o, safetext.Unwrap(cmd.OutOrStdout()), cmd.ErrOrStderr()))
		},
	}
	t.experimentFlag(cmd, &o.experiment)
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "write", "w", "-", "`file` to write, - for standard output")
	flags.StringVar(&o.filter, "filter", "", "capture only frames that match an `expression` in tcpdump's language")
	flags.Int32Var(&o.snapLength, "snaplen", 0, "keep this many `bytes` of each frame (default: all)")
	flags.StringVar(&o.limit, "limit", "64Mi", "end when the capture has this `size`")
	flags.DurationVar(&o.duration, "duration", 0, "end after this `time` (default: with Ctrl-C)")
	for _, flag := range []string{"filter", "snaplen", "limit", "duration"} {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

func captureArguments(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s needs a NODE and a NETWORK, such as %[1]s hq wan -w hq.pcapng; got %d arguments", cmd.CommandPath(), len(args))
	}
	return nil
}

// completeCapture offers nodes, then the networks of the node.
func (t *target) completeCapture(experiment *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return t.completeFrom(cmd, *experiment, typed, (*expandedExperiment).nodeNames)
		case 1:
			return t.completeFrom(cmd, *experiment, typed, func(s *expandedExperiment) []string { return s.networksOf(args[0]) })
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// networksOf a node.
func (s *expandedExperiment) networksOf(node string) (names []string) {
	n, _ := s.Topology.Node(node)
	for _, attachment := range n.Attachments {
		names = append(names, attachment.Network)
	}
	return names
}

func (o captureOptions) check(command string, args []string, terminal bool) error {
	if o.file == "-" && terminal {
		where := strings.Join(args, " ")
		return fmt.Errorf("a capture is not text for a terminal: write it to a file (%[1]s %[2]s -w FILE) or into a pipe (%[1]s %[2]s -w - | wireshark -k -i -)", command, where)
	}
	limit, err := resource.ParseQuantity(o.limit)
	if err != nil || limit.Sign() <= 0 {
		return fmt.Errorf("--limit %q: want a size, such as 64Mi or 1Gi", o.limit)
	}
	if wrong := render.WrongCaptureLimit(limit); wrong != "" {
		return fmt.Errorf("--limit %q: %s", o.limit, wrong)
	}
	if o.duration < 0 {
		return fmt.Errorf("--duration %v: want a duration above zero, such as 30s", o.duration)
	}
	if o.snapLength != 0 && (o.snapLength < 14 || o.snapLength > 65535) {
		return fmt.Errorf("--snaplen %d: want 14 to 65535 bytes, or omit it to keep complete frames", o.snapLength)
	}
	return nil
}

// object is the Capture that the options describe.
func (o captureOptions) object(s *expandedExperiment, node, network string) *v1alpha1.Capture {
	limit := resource.MustParse(o.limit) // valid: check passed
	capture := &v1alpha1.Capture{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: s.Name + "-"}}
	capture.Spec = v1alpha1.CaptureSpec{Experiment: s.Name, Network: network, Nodes: []string{node}, Filter: o.filter, Limit: &limit}
	if o.snapLength != 0 {
		capture.Spec.SnapLengthBytes = &o.snapLength
	}
	if o.duration != 0 {
		capture.Spec.Duration = v1alpha1.Duration(o.duration.String())
	}
	return capture
}

func (c *cluster) capture(ctx context.Context, node, network string, o captureOptions, stdout, notes io.Writer) error {
	s, err := c.runningExperiment(ctx, o.experiment, "vignette capture "+node+" "+network)
	if err != nil {
		return err
	}
	if _, err := s.node(node); err != nil {
		return err
	}
	if _, err := s.network(network); err != nil {
		return err
	}
	if known := s.networksOf(node); !slices.Contains(known, network) {
		return fmt.Errorf("node %s is not on network %s: its networks are %s", node, network, listNames(known))
	}
	out, err := openCapture(o.file, stdout)
	if err != nil {
		return err
	}
	defer out.close()
	capture := o.object(s, node, network)
	run := &captureRun{cluster: c, capture: capture, uid: string(s.UID), node: node, notes: notes}
	if err := c.kube.Create(ctx, capture, client.FieldOwner(fieldManager)); err != nil {
		return explainRefused(err, "Capture", run.flagOf)
	}
	return run.stream(ctx, out)
}

// captureRun is a capture that is under way.
type captureRun struct {
	*cluster
	capture *v1alpha1.Capture
	uid     string
	node    string
	notes   io.Writer
}

// stream writes the capture until it ends, and prints a summary.
func (r *captureRun) stream(ctx context.Context, out *captureOutput) error {
	// If the reader, such as Wireshark, is closed, that ends the capture; the signal must not end this program first.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer r.stop(reading)
	if err := r.awaitStart(ctx); err != nil {
		return err
	}
	if err := out.begin(); err != nil {
		return err
	}
	fmt.Fprintf(r.notes, "Capturing %s of %s; Ctrl-C ends it.\n", r.capture.Spec.Network, r.node)
	stop := context.AfterFunc(ctx, func() {
		r.stop(reading)
		time.AfterFunc(drainTimeout, cancel)
	})
	defer stop()
	content := newFollower(reading, r.cluster, r.uid, r.path(), 0, r.note)
	defer content.Close()
	copied := make(chan error, 1)
	var written pcapng.BlockScanner
	go func() { copied <- copyBlocks(out, content, &written) }()
	err := <-copied
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		r.note(fmt.Sprintf("the end of the capture did not arrive within %v; the archive will have it: %s", drainTimeout, r.downloadCommand()))
		err = nil
	}
	if errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	r.stop(reading)
	return errors.Join(err, r.summary(reading, &written))
}

func (r *captureRun) note(text string) { fmt.Fprintln(r.notes, text) }

func (r *captureRun) path() string {
	return path.Join("captures", r.capture.Name, r.capture.Spec.Network, r.node+".pcapng")
}

func (r *captureRun) downloadCommand() string {
	return fmt.Sprintf("vignette results -n %s %s --get %s", r.capture.Namespace, r.capture.Spec.Experiment, r.path())
}

// awaitStart waits until frames are captured.
func (r *captureRun) awaitStart(ctx context.Context) error {
	return r.awaitCondition(ctx, r.capture, "the capture", r.flagOf, func() ([]metav1.Condition, string) {
		if r.capture.Status.EndedAt != nil {
			return nil, "" // it has ended already; its frames can still be read
		}
		return r.capture.Status.Conditions, v1alpha1.ConditionCapturing
	})
}

// flagOf a field of a Capture, with the value that was typed.
func (r *captureRun) flagOf(field string) string {
	spec := &r.capture.Spec
	switch name := strings.TrimPrefix(field, "spec."); {
	case name == "filter":
		return fmt.Sprintf("--filter %q", spec.Filter)
	case name == "duration":
		return fmt.Sprintf("--duration %q", spec.Duration)
	case name == "snapLengthBytes":
		return "--snaplen"
	case name == "limit":
		return fmt.Sprintf("--limit %q", spec.Limit)
	case name == "network":
		return fmt.Sprintf("network %q", spec.Network)
	case strings.HasPrefix(name, "nodes"):
		return fmt.Sprintf("node %q", r.node)
	}
	return field
}

// refusedField begins the operator's messages about a field: its path, and mostly its value.
var refusedField = regexp.MustCompile(`\bspec(?:\.[A-Za-z]+|\[[^\]]*\])+: (?:(?:Invalid value: (?:"(?:[^"\\]|\\.)*"|[^\s:]+)|Forbidden|Required value): )?`)

// withTypedNames replaces fields by what was typed.
func withTypedNames(message string, typed func(field string) string) string {
	return refusedField.ReplaceAllStringFunc(message, func(found string) string {
		field, _, _ := strings.Cut(found, ": ")
		return typed(field) + ": "
	})
}

// awaitCondition reads an object until a condition of it is true. It fails if the condition stays false.
func (c *cluster) awaitCondition(ctx context.Context, object client.Object, what string, typed func(field string) string, condition func() ([]metav1.Condition, string)) error {
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	why := "is the operator up? kubectl get deployments -A -l app.kubernetes.io/part-of=vignette"
	for {
		err := c.kube.Get(limited, client.ObjectKeyFromObject(object), object)
		if err != nil && limited.Err() == nil {
			return explain(err)
		}
		conditions, name := condition()
		if name == "" || meta.IsStatusConditionTrue(conditions, name) {
			return nil
		}
		if found := meta.FindStatusCondition(conditions, name); found != nil {
			if found.Status == metav1.ConditionFalse {
				return fmt.Errorf("%s was refused: %s", what, withTypedNames(found.Message, typed))
			}
			why = "the operator says: " + found.Message
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return exit(exitDetached)
			}
			return fmt.Errorf("%s was not processed within %v: %s", what, startTimeout, why)
		case <-time.After(pollInterval):
		}
	}
}

// stop deletes the capture; its frames stay in the archive.
func (r *captureRun) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := client.IgnoreNotFound(r.kube.Delete(ctx, r.capture)); err != nil {
		r.note(fmt.Sprintf("the capture continues to its limit, as it could not be ended (%v): kubectl delete -n %s capture %s", err, r.capture.Namespace, r.capture.Name))
	}
}

// summary prints how many frames were written, and how many radiod dropped.
func (r *captureRun) summary(ctx context.Context, written *pcapng.BlockScanner) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	var last *runapi.CaptureSample
	for {
		sample, err := r.sample(ctx)
		if sample != nil {
			last = sample
		}
		if err == nil && last != nil && last.Ended != "" {
			break
		}
		select {
		case <-time.After(pollInterval):
			continue
		case <-ctx.Done():
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("count of the frames: %w", err)
		}
		break
	}
	r.note(captureText(last, written) + " Archived: " + r.downloadCommand())
	return nil
}

func captureText(s *runapi.CaptureSample, written *pcapng.BlockScanner) string {
	text := fmt.Sprintf("%d frames", written.Frames)
	if written.Frames == 1 {
		text = "1 frame"
	}
	if s != nil && s.Frames > written.Frames {
		text += fmt.Sprintf(" of %d captured", s.Frames)
	}
	text += ", " + size(written.Bytes)
	if s == nil {
		return text + "; the radio did not say how many it dropped."
	}
	dropped := uint64(0)
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(s.Dropped)) {
		dropped += s.Dropped[reason]
		reasons = append(reasons, fmt.Sprintf("%s %d", reason, s.Dropped[reason]))
	}
	text += fmt.Sprintf(", %d dropped", dropped)
	if dropped > 0 {
		text += " (" + strings.Join(reasons, ", ") + ")"
	}
	if s.Ended == "limit" {
		text += "; it ended at its limit, --limit raises it"
	}
	return text + "."
}

// sampleBytes at the end of a radio log contain the newest samples of every node.
const sampleBytes = 1 << 20

// sample is radiod's newest one of the capture.
func (r *captureRun) sample(ctx context.Context) (newest *runapi.CaptureSample, err error) {
	manifest, err := r.archive.Files(ctx, r.uid)
	if err != nil {
		return nil, err
	}
	for _, file := range manifest.Files {
		if path.Dir(file.Path) != "radio" {
			continue
		}
		offset := max(0, file.Bytes-sampleBytes)
		content, err := r.archive.Follow(ctx, r.uid, file.Path, offset)
		if err != nil {
			return nil, err
		}
		found, err := newestSample(io.LimitReader(content, file.Bytes-offset), r.capture.Name, r.node)
		_ = content.Close()
		if err != nil {
			return nil, err
		}
		if found != nil {
			newest = found
		}
	}
	return newest, nil
}

func newestSample(log io.Reader, capture, node string) (newest *runapi.CaptureSample, err error) {
	_, err = eachLine(log, true, func(line []byte) error {
		var sample runapi.CaptureSample
		if bytes.Contains(line, []byte(`"capture"`)) && json.Unmarshal(line, &sample) == nil && sample.Capture == capture && sample.Node == node {
			newest = &sample
		}
		return nil
	})
	return newest, err
}

// copyBlocks copies a capture as it arrives, complete blocks at once, as readers of a pipe wait for the rest of a block. An incomplete
// last block is left out.
func copyBlocks(out io.Writer, in io.Reader, whole *pcapng.BlockScanner) error {
	piece, pending := make([]byte, 64<<10), []byte(nil)
	for {
		n, readErr := in.Read(piece)
		before := whole.Bytes
		_, err := whole.Write(piece[:n])
		pending = append(pending, piece[:n]...)
		if ready := whole.Bytes - before; ready > 0 {
			if _, err := out.Write(pending[:ready]); err != nil {
				return err
			}
			pending = slices.Clone(pending[ready:])
		}
		switch {
		case err != nil:
			return fmt.Errorf("the archived capture is damaged: %w", err)
		case errors.Is(readErr, io.EOF):
			return nil
		case readErr != nil:
			return readErr
		}
	}
}
