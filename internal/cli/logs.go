package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"vignette.dev/vignette/internal/runapi"
	runclient "vignette.dev/vignette/internal/runapi/client"
	"vignette.dev/vignette/internal/safetext"
)

// streamFiles are the files of each stream of an app; %d is an instance's number.
var streamFiles = map[string]string{"stdout": "stdout-%d.log", "stderr": "stderr-%d.log", "messages": "messages-%d.jsonl", "agent": "agent.jsonl"}

// streamNames in the order in which they are shown.
var streamNames = []string{"stdout", "stderr", "messages", "agent"}

type logsOptions struct {
	experiment, uid string
	streams         []string
	instance        int
	follow, raw     bool
	since           time.Duration
	tail            int
}

func newLogs(t *target) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs NODE[/APP]",
		Short: "Show or follow the logs of a node's apps",
		Long: "logs reads the archive, so it works while an experiment runs, after its end and after its deletion.\n" +
			"The streams of an app are stdout and stderr, messages (its message events, as JSON Lines) and agent (what the\n" +
			"platform's agent did with it: starts, stops, exits). Lines of several instances begin with the instance's name.\n" +
			"--follow continues until the run ends or Ctrl-C. Control characters, such as an escape sequence, are written as\n" +
			"\\u001b; --raw leaves them unchanged.",
		Example: "  vignette logs hq\n" +
			"  vignette logs hq/broker --follow\n" +
			"  vignette logs nor/bft --instance 3 --stream messages --since 30s\n" +
			"  vignette logs -e quickstart nor/bft --stream messages | jq -r .status | sort | uniq -c",
		Args:              oneArgument("a NODE or NODE/APP"),
		ValidArgsFunction: t.completeNodeApp(&o.experiment),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := t.connect(cmd.Context())
			if err != nil {
				return err
			}
			return t.explainArchive(c.logs(cmd.Context(), args[0], o, newLogWriter(cmd.OutOrStdout(), cmd.ErrOrStderr())))
		},
	}
	t.experimentFlag(cmd, &o.experiment)
	flags := cmd.Flags()
	flags.StringVar(&o.uid, "uid", "", "`UID` of the run, if the name has several")
	flags.BoolVarP(&o.follow, "follow", "f", false, "show new lines as they are written")
	flags.IntVarP(&o.instance, "instance", "i", 0, "`number` of the instance, from 1 (default: all)")
	flags.StringSliceVar(&o.streams, "stream", []string{"stdout", "stderr"}, "`streams`: "+strings.Join(streamNames, ", "))
	flags.DurationVar(&o.since, "since", 0, "only events of this last `duration`; for the streams messages and agent, whose lines have times")
	flags.BoolVar(&o.raw, "raw", false, "write lines as the apps wrote them, with control characters")
	flags.IntVar(&o.tail, "tail", -1, "only the last `lines` of each file")
	noCompletion(cmd, "uid", "instance", "since", "tail")
	complete(cmd, "stream", cobra.FixedCompletions(streamNames, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// completeNodeApp offers nodes and, after a slash, their apps.
func (t *target) completeNodeApp(experiment *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return t.completeFrom(cmd, *experiment, typed, func(s *expandedExperiment) []string { return s.nodeApps(typed) })
	}
}

func (s *expandedExperiment) nodeApps(typed string) (names []string) {
	if !strings.Contains(typed, "/") {
		return s.nodeNames()
	}
	for _, node := range s.Nodes {
		for _, app := range containers(node) {
			names = append(names, node.Name+"/"+app)
		}
	}
	return names
}

func (o logsOptions) check() error {
	for _, stream := range o.streams {
		if !slices.Contains(streamNames, stream) {
			return fmt.Errorf("--stream %q: want %s", stream, strings.Join(streamNames, ", "))
		}
		if o.since != 0 && (stream == "stdout" || stream == "stderr") {
			return fmt.Errorf("--since is for lines that have a time, and those of %s have none: add --stream messages or --stream agent, or use --tail", stream)
		}
	}
	if o.since < 0 {
		return fmt.Errorf("--since %v: want a duration above zero, such as 30s", o.since)
	}
	if o.tail < -1 { // -1, the default, means all
		return fmt.Errorf("--tail %d: want a number of lines, such as 20", o.tail)
	}
	if o.instance < 0 {
		return fmt.Errorf("--instance %d: want the number of an instance, from 1", o.instance)
	}
	return nil
}

// logSource is one file of a run's logs.
type logSource struct {
	path   string
	name   string
	stderr bool
}

func (c *cluster) logs(ctx context.Context, where string, o logsOptions, w *logWriter) error {
	uid, err := c.runOf(ctx, o, "vignette logs "+where)
	if err != nil {
		return err
	}
	state, err := c.archive.State(ctx, uid)
	if runclient.IsNotFound(err) && apiServerMessage(asServerError(err)) == "" {
		return fmt.Errorf("the archive has no run %s, or not yet: vignette status shows the experiments, vignette results --uid lists the runs of a name", uid)
	}
	if err != nil {
		return err
	}
	sources, err := logSources(state.Plan, where, o)
	if err != nil {
		return err
	}
	manifest, err := c.archive.Files(ctx, uid)
	if err != nil {
		return err
	}
	written := map[string]int64{}
	for _, file := range manifest.Files {
		written[file.Path] = file.Bytes
	}
	reader := &logReader{cluster: c, uid: uid, options: o, writer: w, now: time.Now}
	w.raw = o.raw
	w.prefixes(sources)
	if o.follow && !state.Sealed {
		return reader.follow(ctx, sources, written)
	}
	sources = slices.DeleteFunc(sources, func(s logSource) bool { return written[s.path] == 0 })
	if len(sources) == 0 {
		w.note(nothingWritten(where, o, manifest))
	}
	for _, source := range sources {
		if _, err := reader.read(ctx, source); err != nil {
			return fmt.Errorf("%s: %w", source.path, err)
		}
	}
	return nil
}

// runOf returns the UID of the requested run: of the existing experiment, else of the newest archived run.
func (c *cluster) runOf(ctx context.Context, o logsOptions, command string) (string, error) {
	if o.uid != "" {
		return o.uid, nil
	}
	e, err := c.chooseExperiment(ctx, o.experiment, command)
	if err == nil {
		return string(e.UID), nil
	}
	if o.experiment == "" {
		return "", err
	}
	runs, archiveErr := c.archive.Runs(ctx, c.namespace, o.experiment)
	switch {
	case archiveErr != nil:
		return "", archiveErr
	case len(runs) > 0:
		return runs[0].UID, nil
	}
	return "", err
}

// logSources are the requested files, whether they exist or not.
func logSources(plan runapi.Plan, where string, o logsOptions) (sources []logSource, err error) {
	nodeName, appName, oneApp := strings.Cut(where, "/")
	i := slices.IndexFunc(plan.Nodes, func(n runapi.PlannedNode) bool { return n.Name == nodeName })
	if i < 0 {
		names := make([]string, len(plan.Nodes))
		for i, node := range plan.Nodes {
			names[i] = node.Name
		}
		return nil, fmt.Errorf("there is no node %s in experiment %s: want one of %s", nodeName, plan.Name, listNames(names))
	}
	node := plan.Nodes[i]
	names := make([]string, len(node.Apps))
	for i, app := range node.Apps {
		names[i] = app.Name
		if !oneApp || app.Name == appName {
			sources = append(sources, appSources(node.Name, app, o)...)
		}
	}
	switch {
	case oneApp && !slices.Contains(names, appName):
		return nil, fmt.Errorf("node %s of experiment %s has no app %s: want one of %s", node.Name, plan.Name, appName, listNames(names))
	case len(names) == 0:
		return nil, fmt.Errorf("node %s of experiment %s runs no app, so that it has no logs: name another node", node.Name, plan.Name)
	case len(sources) == 0:
		return nil, fmt.Errorf("--instance %d: no app of %s has as many instances; without the flag all are shown", o.instance, where)
	}
	return sources, nil
}

func appSources(node string, app runapi.PlannedApp, o logsOptions) (sources []logSource) {
	alone := len(o.streams) == 1
	for _, stream := range streamNames {
		if !slices.Contains(o.streams, stream) {
			continue
		}
		file := path.Join("logs", node, app.Name, streamFiles[stream])
		if stream == "agent" {
			sources = append(sources, logSource{path: file, name: node + "/" + app.Name + suffix(alone, stream)})
			continue
		}
		for i, instance := range app.Instances {
			if o.instance == 0 || o.instance == i+1 {
				sources = append(sources, logSource{fmt.Sprintf(file, i+1), instance + suffix(alone || stream == "stdout", stream), stream == "stderr" && !alone})
			}
		}
	}
	return sources
}

func suffix(plain bool, stream string) string {
	if plain {
		return ""
	}
	return " " + stream
}

// nothingWritten names the streams that have content.
func nothingWritten(where string, o logsOptions, manifest runapi.Manifest) string {
	var others []string
	for _, stream := range streamNames {
		prefix, _, _ := strings.Cut(streamFiles[stream], "%")
		for _, file := range manifest.Files {
			if strings.HasPrefix(file.Path, "logs/"+where+"/") && strings.HasPrefix(path.Base(file.Path), prefix) && file.Bytes > 0 {
				others = append(others, "--stream "+stream)
				break
			}
		}
	}
	text := fmt.Sprintf("Nothing was written to %s of %s so far.", strings.Join(o.streams, " and "), where)
	if len(others) > 0 {
		text += " There is something in " + strings.Join(others, ", ") + "."
	}
	return text
}

// logReader shows logs of one run.
type logReader struct {
	*cluster
	uid     string
	options logsOptions
	writer  *logWriter
	now     func() time.Time
}

// read shows the present content of a log, and returns the size of what it has shown. A follower shows a line that is incomplete yet.
func (r *logReader) read(ctx context.Context, source logSource) (int64, error) {
	content, err := r.archive.File(ctx, r.uid, source.path)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	var last [][]byte
	size, err := eachLine(content, !r.options.follow, func(line []byte) error {
		switch {
		case !r.recent(line):
		case r.options.tail < 0:
			return r.writer.line(source, line)
		default:
			last = append(last, slices.Clone(line))
			last = last[max(0, len(last)-r.options.tail):]
		}
		return nil
	})
	for _, line := range last {
		if err := r.writer.line(source, line); err != nil {
			return size, err
		}
	}
	return size, err
}

// recent reports whether a line is within --since.
func (r *logReader) recent(line []byte) bool {
	if r.options.since == 0 {
		return true
	}
	var event struct {
		TimeNanoseconds int64 `json:"ts"`
	}
	return json.Unmarshal(line, &event) != nil || r.now().Sub(time.Unix(0, event.TimeNanoseconds)) <= r.options.since
}

// eachLine passes on complete lines, and perhaps an incomplete last one, up to an error. size is the number of bytes passed on.
func eachLine(content io.Reader, incomplete bool, use func([]byte) error) (size int64, err error) {
	buffered := bufio.NewReader(content)
	for {
		line, err := buffered.ReadBytes('\n')
		if err == nil || incomplete && len(line) > 0 {
			size += int64(len(line))
			if err := use(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
				return size, err
			}
		}
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

// follow shows the present lines, then each new one, of all sources.
func (r *logReader) follow(ctx context.Context, sources []logSource, written map[string]int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(sources))
	for _, source := range sources {
		go func() {
			err := r.followOne(ctx, source, written[source.path] > 0)
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("%s: %w", source.path, err)
			}
			errs <- err
		}()
	}
	for range sources {
		select {
		case err := <-errs:
			if ctx.Err() != nil {
				return exit(exitDetached)
			}
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return exit(exitDetached)
		}
	}
	return nil
}

func (r *logReader) followOne(ctx context.Context, source logSource, written bool) error {
	var offset int64
	if written && r.options.tail >= 0 {
		var err error
		if offset, err = r.read(ctx, source); err != nil {
			return err
		}
	}
	content := newFollower(ctx, r.cluster, r.uid, source.path, offset, r.writer.note)
	defer content.Close()
	_, err := eachLine(content, true, func(line []byte) error {
		if r.recent(line) {
			return r.writer.line(source, line)
		}
		return nil
	})
	return err
}

// logWriter writes complete lines of several sources, each with its instance's name if there are several.
type logWriter struct {
	mu       sync.Mutex
	out, err io.Writer
	// raw lines are not escaped.
	raw bool
	// colours of names, on a terminal.
	colours bool
	width   int
	order   map[string]int
}

func newLogWriter(out, err io.Writer) *logWriter {
	return &logWriter{out: safetext.Unwrap(out), err: safetext.Unwrap(err), colours: descriptor(out) >= 0}
}

// prefixes decides whether lines begin with the name of their source, and its width.
func (w *logWriter) prefixes(sources []logSource) {
	w.width, w.order = 0, map[string]int{}
	for _, source := range sources {
		if _, known := w.order[source.name]; !known {
			w.order[source.name] = len(w.order)
		}
	}
	several := slices.ContainsFunc(sources, func(s logSource) bool { return !sameInstance(s, sources[0]) })
	for _, source := range sources {
		if several {
			w.width = max(w.width, len(source.name))
		}
	}
}

// sameInstance reports whether two sources are the output of one instance, which needs no name.
func sameInstance(a, b logSource) bool {
	return strings.TrimSuffix(a.name, " stderr") == strings.TrimSuffix(b.name, " stderr")
}

func (w *logWriter) line(source logSource, line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.out
	if source.stderr {
		out = w.err
	}
	prefix := ""
	if w.width > 0 {
		prefix = fmt.Sprintf("%-*s | ", w.width, source.name)
		if w.colours {
			prefix = fmt.Sprintf("\x1b[%dm%s\x1b[0m", 31+w.order[source.name]%6, prefix)
		}
	}
	text := string(line)
	if !w.raw {
		text = safetext.Terminal(strings.TrimSuffix(text, "\r"))
	}
	_, err := fmt.Fprintf(out, "%s%s\n", prefix, text)
	return err
}

func (w *logWriter) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.err, safetext.Terminal(text))
}
