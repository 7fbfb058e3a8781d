package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/safetext"
)

// anyShell is bash if the image has it, else sh.
var anyShell = []string{"/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec /bin/sh"}

// streams are where a remote command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func newShell(t *target) *cobra.Command {
	var experiment, app, network string
	var tools, ofEMANE bool
	cmd := &cobra.Command{
		Use:   "shell NODE [-- COMMAND...]",
		Short: "Open a shell on a node, or run a command there",
		Long: "shell opens a shell in the pod of a node of a running experiment, or runs a command there. Its traffic goes\n" +
			"over the node's radios. Each app of a node has a container with the files of its image, and --app\n" +
			"chooses it; by default it is the first app that is not the platform's traffic generator, whose image has no shell.\n" +
			"With --toolbox it is a container with ping, ip, tc, ss, iperf3, dig, curl and others, which is added to the node's pod.\n" +
			"It shares the node's radios, and stays until the node ends.\n" +
			"On a terminal the command gets one too; else input and output are passed on unchanged, so that it works in\n" +
			"pipes. The exit code is that of the command.\n" +
			"With --emane it reads statistics, tables and parameters of the node's EMANE process, in the words of EMANE's\n" +
			"own shell: get stat mac, get table phy, get config all, help. It changes nothing, and is for administrators.\n" +
			"Also for nodes that are virtual machines. The web console does not have it.\n" +
			"Nodes that are virtual machines have no containers: see vignette ssh and vignette console.",
		Example: "  vignette shell hq\n" +
			"  vignette shell hq -- cat /etc/hosts\n" +
			"  vignette shell --toolbox hq -- ping -c 3 veh-1.wan\n" +
			"  vignette shell --emane hq -- get stat mac numTxSlotErrorMissed\n" +
			"  vignette shell -e bft-live --app picture veh-3 -- cat /proc/net/dev\n" +
			"  tar c config | vignette shell hq -- tar x -C /tmp",
		Args:              shellArguments,
		ValidArgsFunction: t.completeNode(&experiment, &ofEMANE),
		RunE: t.run(func(c *cluster, cmd *cobra.Command, args []string) error {
			place := shellPlace{experiment, args[0], app, network, tools}
			if ofEMANE {
				return c.emaneShell(cmd.Context(), place, t.platform, args[1:], streams{cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()})
			}
			if network != "" {
				return fmt.Errorf("--network %s chooses the EMANE process: use it with --emane", network)
			}
			return c.shell(cmd.Context(), place, args[1:], rawStreams(cmd))
		}),
	}
	t.experimentFlag(cmd, &experiment)
	cmd.Flags().StringVar(&app, "app", "", "`APP` whose container is used (default: the first whose image may have a shell)")
	cmd.Flags().BoolVar(&tools, "toolbox", false, "use a container with network tools, which is added to the node's pod")
	cmd.Flags().BoolVar(&ofEMANE, "emane", false, "read what the node's EMANE process says of itself")
	cmd.Flags().StringVar(&network, "network", "", "`NETWORK` of the EMANE process, if several of the node's networks have engine emane")
	cmd.MarkFlagsMutuallyExclusive("app", "toolbox", "emane")
	complete(cmd, "network", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return t.completeFrom(cmd, experiment, typed, func(s *expandedExperiment) []string { return s.emaneNetworksOf(args) })
	})
	complete(cmd, "app", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return t.completeFrom(cmd, experiment, typed, func(s *expandedExperiment) []string { return s.appsOf(args) })
	})
	return cmd
}

// appsOf the node of the first argument, or of all nodes.
func (s *expandedExperiment) appsOf(args []string) (names []string) {
	if len(args) > 0 {
		if node, found := s.Topology.Node(args[0]); found {
			return containers(node)
		}
	}
	for _, app := range s.Spec.Apps {
		names = append(names, app.Name)
	}
	return names
}

// completeNode offers nodes as the first argument: those with a process of EMANE, or those that are pods.
func (t *target) completeNode(experiment *string, ofEMANE *bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // an unknown command
		}
		names := (*expandedExperiment).podNames
		if *ofEMANE {
			names = (*expandedExperiment).emaneNames
		}
		return t.completeFrom(cmd, *experiment, typed, names)
	}
}

// shellArguments demands the dashes, as vignette would take the command's flags for its own.
func shellArguments(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return fmt.Errorf("%s needs a NODE: see %[1]s --help", cmd.CommandPath())
	case dash < 0 && len(args) > 1 || dash > 1:
		return fmt.Errorf("%s takes one NODE, and the command after --: %[1]s %s -- %s", cmd.CommandPath(), args[0], strings.Join(args[1:], " "))
	}
	return nil
}

// shellPlace is where the shell runs: in an app's container, or in the toolbox. network is that of an EMANE process.
type shellPlace struct {
	experiment, node, app, network string
	toolbox                        bool
}

func (c *cluster) shell(ctx context.Context, place shellPlace, command []string, s streams) error {
	app := place.app
	site, err := c.runningExperiment(ctx, place.experiment, "vignette shell "+place.node)
	if err != nil {
		return err
	}
	node, err := site.node(place.node)
	if err != nil {
		return err
	}
	if node.IsVM() {
		return fmt.Errorf("node %[1]s of experiment %[2]s is a virtual machine, whose apps have no containers: vignette ssh -n %[3]s -e %[2]s %[1]s, or vignette console for its serial console",
			node.Name, site.Name, site.Namespace)
	}
	if app == "" {
		app = site.shellContainer(node)
	} else if err := site.appOf(node, app); err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: site.Namespace, Name: render.PodName(site.Name, node.Name)}
	pod, err := c.podUp(ctx, key, site, node)
	if err != nil {
		return err
	}
	if place.toolbox {
		if app, err = c.toolbox(ctx, pod, site, node, s); err != nil {
			return err
		}
	}
	terminal := terminalOf(s)
	options := &corev1.PodExecOptions{Container: app, Command: command, Stdin: s.in != nil, Stdout: true, Stderr: terminal == nil, TTY: terminal != nil}
	if len(command) == 0 {
		options.Command = anyShell
		if terminal != nil && len(node.Apps) > 1 && !place.toolbox {
			fmt.Fprintf(s.err, "In the container of app %s; --app chooses another: %s\n", app, listNames(node.Apps))
		}
	}
	err = c.exec(ctx, key, options, terminal, s)
	return explainExec(err, site, node, app, command)
}

// kindsWithShell run in images that have one. The traffic generator's, of the other kinds, has none.
var kindsWithShell = []string{"mosquitto", "vernemq", "rabbitmq", "prosody", "zeromqBroker", "mgen", "command"}

// shellContainer is the first container that may have a shell.
func (s *expandedExperiment) shellContainer(node topology.Node) string {
	for _, name := range node.Apps {
		if app, _ := s.App(name); slices.Contains(kindsWithShell, app.Kind()) {
			return name
		}
	}
	return containers(node)[0]
}

// podUp returns the pod of a node, or explains why it cannot be entered.
func (c *cluster) podUp(ctx context.Context, key client.ObjectKey, s *expandedExperiment, node topology.Node) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := c.kube.Get(ctx, key, pod); client.IgnoreNotFound(err) != nil {
		return nil, explain(err)
	}
	how := "its pod is gone"
	if metav1.IsControlledBy(pod, s.Experiment) { // another experiment may use the name meanwhile
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			return pod, nil
		}
		how = "its pod is " + string(pod.Status.Phase)
	}
	return nil, fmt.Errorf("node %[1]s of experiment %[2]s is not up, %[3]s: vignette status -n %[4]s %[2]s shows why; its logs: vignette logs -n %[4]s -e %[2]s %[1]s",
		node.Name, s.Name, how, s.Namespace)
}

// explainExec passes on the command's exit code, and explains a missing command.
func explainExec(err error, s *expandedExperiment, node topology.Node, app string, command []string) error {
	var code utilexec.CodeExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &code):
		return exit(code.Code)
	case !strings.Contains(err.Error(), "no such file or directory") && !strings.Contains(err.Error(), "executable file not found"):
		return explain(err)
	case len(command) > 0:
		return fmt.Errorf("the image of app %s has no program %s: choose another one%s, or use --toolbox", app, command[0], otherContainers(node, app))
	}
	return fmt.Errorf("the image of app %[1]s has no shell: use --toolbox, or your own image (kubectl debug -n %[2]s -it %[3]s --profile=restricted --image=IMAGE --target=%[1]s)%[4]s",
		app, s.Namespace, render.PodName(s.Name, node.Name), otherContainers(node, app))
}

// otherContainers names the other containers of a node, if it has any.
func otherContainers(node topology.Node, app string) string {
	others := slices.DeleteFunc(slices.Clone(containers(node)), func(name string) bool { return name == app })
	if len(others) == 0 {
		return ""
	}
	return fmt.Sprintf(", or another container of node %s with --app (%s)", node.Name, listNames(others))
}

// exec runs a command in a container, by WebSocket or, if the cluster or a proxy does not support that, by SPDY.
func (c *cluster) exec(ctx context.Context, pod client.ObjectKey, options *corev1.PodExecOptions, terminal *terminal, s streams) error {
	executor, err := newExecutor(c.config, pod, options)
	if err != nil {
		return err
	}
	stream := remotecommand.StreamOptions{Stdin: s.in, Stdout: s.out, Tty: options.TTY}
	if terminal == nil {
		stream.Stderr = s.err
		return executor.StreamWithContext(ctx, stream)
	}
	return terminal.raw(func() error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream.TerminalSizeQueue = terminal.windowSizes(ctx)
		return executor.StreamWithContext(ctx, stream)
	})
}

func newExecutor(config *rest.Config, pod client.ObjectKey, options *corev1.PodExecOptions) (remotecommand.Executor, error) {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	address := core.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(options, scheme.ParameterCodec).URL()
	webSocket, err := remotecommand.NewWebSocketExecutor(config, "GET", address.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, "POST", address)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(webSocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// terminal of the user.
type terminal struct{ in, out int }

// terminalOf the streams; nil if input or output is none.
func terminalOf(s streams) *terminal {
	in, out := descriptor(s.in), descriptor(s.out)
	if in < 0 || out < 0 {
		return nil
	}
	return &terminal{in, out}
}

// rawStreams are for a command whose other side controls the terminal.
func rawStreams(cmd *cobra.Command) streams {
	return streams{cmd.InOrStdin(), safetext.Unwrap(cmd.OutOrStdout()), safetext.Unwrap(cmd.ErrOrStderr())}
}

// contentWriter is for a file's content: unchanged, except on a terminal.
func contentWriter(out io.Writer) io.Writer {
	if descriptor(out) >= 0 {
		return out
	}
	return safetext.Unwrap(out)
}

// descriptor of a terminal; -1 for anything else.
func descriptor(stream any) int {
	if out, ok := stream.(io.Writer); ok {
		stream = safetext.Unwrap(out)
	}
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return int(file.Fd())
	}
	return -1
}

// raw passes every key to the remote side while f runs.
func (t *terminal) raw(f func() error) error {
	before, err := term.MakeRaw(t.in)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(t.in, before) }()
	return f()
}

// resizeInterval is how often the window's size is read: not every system has a signal for it.
const resizeInterval = 200 * time.Millisecond

// windowSizes are the present size of the window, then each new one.
func (t *terminal) windowSizes(ctx context.Context) remotecommand.TerminalSizeQueue {
	return &windowSizes{ctx: ctx, size: func() (int, int, error) { return term.GetSize(t.out) }}
}

type windowSizes struct {
	ctx  context.Context
	size func() (width, height int, err error)
	last remotecommand.TerminalSize
}

// Next implements remotecommand.TerminalSizeQueue.
func (s *windowSizes) Next() *remotecommand.TerminalSize {
	for s.ctx.Err() == nil {
		width, height, err := s.size()
		if now := (remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}); err == nil && now != s.last {
			s.last = now
			return &now
		}
		_ = pause(s.ctx, resizeInterval)
	}
	return nil
}
