package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	page "vignette.dev/vignette/console"
	"vignette.dev/vignette/internal/console"
	"vignette.dev/vignette/scenarios"
)

type uiOptions struct {
	port    int
	open    bool
	mapFile string
}

func newUI(t *target, version string) *cobra.Command {
	var o uiOptions
	cmd := &cobra.Command{
		Use:   "ui [EXPERIMENT]",
		Short: "Open the web console with your own rights, until Ctrl-C",
		Long: "ui serves the web console on this machine's loopback address, with the rights of your kubeconfig, and prints the\n" +
			"address to open. The address has a secret of this start: whoever has it has your rights on the cluster until Ctrl-C.\n" +
			"With the name of an EXPERIMENT the address is that of its page; else with -n the page shows that namespace only.\n" +
			"From another machine: ssh -L PORT:127.0.0.1:PORT HOST with the --port of ui, and open the address there.",
		Example: "  vignette ui --open\n" +
			"  vignette ui --map norway.pmtiles\n" +
			"  vignette ui -n team-nor quickstart\n" +
			"  vignette ui --port 8443",
		Args:              atMostOne("the name of an EXPERIMENT"),
		ValidArgsFunction: t.completeExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.port < 0 || o.port > 65535 {
				return fmt.Errorf("--port %d: want a TCP port from 1 to 65535, or 0 for any", o.port)
			}
			ui, err := t.newUI(&o, version, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return ui.run(cmd.Context(), ui.address(args), o.open, cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "TCP `port` on loopback (default: any that is free)")
	cmd.Flags().BoolVar(&o.open, "open", false, "open it in the browser of BROWSER, or the system's")
	cmd.Flags().StringVar(&o.mapFile, "map", "", "PMTiles `FILE` that maps show below terrain and tracks")
	noCompletion(cmd, "port")
	complete(cmd, "map", cobra.FixedCompletions([]string{"pmtiles"}, cobra.ShellCompDirectiveFilterFileExt))
	return cmd
}

// ui is a console that listens.
type ui struct {
	listener  net.Listener
	handler   http.Handler
	token     string
	namespace string
	// asked is the namespace that -n names; empty without it.
	asked string
}

// newUI listens on loopback and makes the console of the kubeconfig's user.
func (t *target) newUI(o *uiOptions, version string, complaints io.Writer) (*ui, error) {
	background, err := console.OpenMap(o.mapFile)
	if err != nil {
		return nil, fmt.Errorf("--map: %w", err)
	}
	port := o.port
	config, namespace, err := t.load()
	if err != nil {
		return nil, err
	}
	user, err := console.NewUser(config)
	if err != nil {
		return nil, err
	}
	user.Namespace, user.Context = namespace, t.contextName()
	assets, err := fs.Sub(page.Files, "dist")
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("port %d of 127.0.0.1 cannot be used, another program may have it: omit --port for any that is free", port)
	}
	port = listener.Addr().(*net.TCPAddr).Port
	access := console.NewLocal(user, port)
	handler, err := console.New(console.Config{
		Assets: assets, Library: scenarios.Files, Access: access, Origins: loopbackOrigins(port),
		Clone: func(ctx context.Context, config *rest.Config, namespace, run string) (*console.Clone, error) {
			return CloneRun(ctx, config, t.platform, namespace, run)
		},
		Map: background, PlatformNamespace: t.platform, Version: version, Log: slog.New(slog.NewTextHandler(complaints, nil)),
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &ui{listener, handler, access.Token(), namespace, t.namespace}, nil
}

// loopbackOrigins are the names under which a browser on this machine reaches a port.
func loopbackOrigins(port int) (origins []string) {
	for _, host := range []string{"127.0.0.1", "localhost"} {
		origins = append(origins, "http://"+net.JoinHostPort(host, strconv.Itoa(port)))
	}
	return origins
}

// address of the page: of an experiment if one is named, else of the experiments. The token is in the fragment, which browsers do not send.
func (u *ui) address(experiment []string) string {
	address := url.URL{Scheme: "http", Host: u.listener.Addr().String(), Path: "/", Fragment: "token=" + u.token}
	if len(experiment) > 0 {
		address = *address.JoinPath("ns", u.namespace, "experiments", experiment[0])
	} else if u.asked != "" {
		address.RawQuery = url.Values{"ns": {u.asked}}.Encode()
	}
	return address.String()
}

// closeTimeout for requests under way at the end.
const closeTimeout = time.Second

// run serves until the context ends.
func (u *ui) run(ctx context.Context, address string, open bool, out io.Writer) error {
	server := console.NewHTTP(u.handler)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(u.listener) }()
	fmt.Fprintf(out, "Open %s\nCtrl-C ends the console.\n", address)
	if open {
		if err := showInBrowser(ctx, address); err != nil {
			fmt.Fprintln(out, err)
		}
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if server.Shutdown(limit) != nil {
		return server.Close() // open watches never end by themselves
	}
	return nil
}
