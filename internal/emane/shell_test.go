package emane

import (
	"bytes"
	"strings"
	"testing"

	"vignette.dev/vignette/internal/emane/emanepb"
)

func shellOf(t *testing.T) *Shell {
	t.Helper()
	known := rfpipeAnswers()
	known[asked{emanepb.Query_PARAMETERS, 3}] = &emanepb.Answer{Parameters: &emanepb.Parameters{BuildId: new(uint32(3)), Parameters: []*emanepb.Parameter{
		{Name: new("frequencyofinterest"), Values: []*emanepb.Value{numeric(300), numeric(310)}},
		{Name: new("spectralmaskmanifesturi")},
	}}}
	known[asked{emanepb.Query_STATISTICS, Emulator}] = statistics(statistic("numOTAChannelDownstreamPackets", numeric(4)))
	s, err := NewShell(emulator(t, known))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheShellShowsWhatItIsAskedFor(t *testing.T) {
	for command, want := range map[string]string{
		"get stat mac": "mac  numDownstreamPacketsBroadcastTx0 = 12\n",
		"get stat all": "emulator  numOTAChannelDownstreamPackets = 4\nmac  numDownstreamPacketsBroadcastTx0 = 12\n",
		"get stat all numDownstreamPacketsBroadcastTx0": "mac  numDownstreamPacketsBroadcastTx0 = 12\n",
		"get config phy":                         "phy  frequencyofinterest = 300,310\nphy  spectralmaskmanifesturi = \n",
		"get config phy spectralmaskmanifesturi": "phy  spectralmaskmanifesturi = \n",
		"get table phy PathlossEventInfoTable":   "phy PathlossEventInfoTable\nNEM  Forward Pathloss\n2    95\n",
	} {
		var out bytes.Buffer
		if err := shellOf(t).Command(&out, strings.Fields(command)...); err != nil || out.String() != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", command, err, out.String(), want)
		}
	}
}

func TestTheEndOfInputEndsTheLineOfThePrompt(t *testing.T) {
	for prompt, want := range map[string]string{"> ": "> nem", "": "nem"} {
		var out bytes.Buffer
		if err := shellOf(t).Run(strings.NewReader("show\n"), &out, prompt); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasPrefix(got, want) || strings.HasSuffix(got, "\n> \n") != (prompt != "") || strings.HasSuffix(got, "\n\n") {
			t.Errorf("with the prompt %q: %q", prompt, got)
		}
	}
}

func TestTheShellSaysWhatIsWrongAndGoesOn(t *testing.T) {
	in := strings.Join([]string{"get", "get stat app", "get figures mac", "get stat mac nothing", "set config mac delay=1", "clear stat all", "", "help", "show", "quit", "get stat mac"}, "\n")
	var out bytes.Buffer
	if err := shellOf(t).Run(strings.NewReader(in), &out, "> "); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`> "get": want show, get stat|table|config LAYER`,
		`> layer "app": want emulator, `,
		"> get figures: want stat, table or config",
		"> stat of mac: none is called nothing; get stat mac has all",
		"> set would change the run without a record: change the network by vignette set",
		"> clear would change the run without a record",
		"nem 1  mac       rfpipemaclayer\n",
		ShellHelp,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the shell says\n%s\nwant %q in it", out.String(), want)
		}
	}
	if strings.Contains(out.String(), "numDownstream") {
		t.Errorf("a command after quit was carried out:\n%s", out.String())
	}
}
