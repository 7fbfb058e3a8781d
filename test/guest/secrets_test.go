//go:build guest

package guest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/credentials"
	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

// token is what a Secret of the team's holds. Only the app that asks for it may see it, and nobody may write it down.
const token = "s3cret-of-the-team"

const (
	// keeper tells that it has the token without saying it.
	keeper = `echo "token $(printf %s "$TOKEN" | sha256sum)"; echo "all seen"; exec sleep 1000`
	// nosy is another app, of the same user, which looks for it.
	nosy = `echo "variable [$TOKEN]"; ls /vignette/security /run/vignette/secrets
for f in /run/vignette/secrets/*/* /vignette/security/* /var/lib/vignette/*/*/* /dev/vd*; do head -c 1 $f >/dev/null && echo "reads $f"; done 2>/dev/null
cat /proc/[0-9]*/environ 2>/dev/null | grep -ac 's3cret[-]of'; mount | grep -c vgsecret; echo "all seen"; exec sleep 1000`
)

// TestAppsOfAVirtualMachineHaveTheirSecretsAndNobodyElse boots the platform's guest with what the operator asks of KubeVirt for a node with a broker that has
// TLS and passwords, clients of it, and apps that take variables from a Secret.
func TestAppsOfAVirtualMachineHaveTheirSecretsAndNobodyElse(t *testing.T) {
	disks := disksFor(t, "xorrisofs")
	var planned []runapi.PlannedApp
	for _, app := range []string{"broker", "bft", "picture", "keeper", "nosy", "lacking"} {
		planned = append(planned, runapi.PlannedApp{Name: app, Kind: "image", Instances: []string{"veh-1/" + app}})
	}
	b := newBed(t, planned...)
	secrets := map[string]map[string][]byte{"keys": {"token": []byte(token), "user": []byte("vera")}}
	files, err := credentials.Make("vm", []string{"veh-1"}, []netip.Addr{netip.MustParseAddr("198.18.9.1")}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	m := b.startWithSecrets(disks, files, secrets)

	const lacks = "node veh-1: app lacking takes variable TOKEN from key absent of Secret keys, which has no such key: create it, then create the experiment again"
	m.wait("five agents that are ready, and one that lacks a key", bootTime, func() bool {
		state, err := b.client.State(t.Context(), runUID)
		ready, lacking := 0, false
		for _, a := range state.Agents {
			if a.Phase == runapi.AgentReady {
				ready++
			} else if lacking = a.App == "lacking" && a.Reason == runapi.ReasonKeyNotFound && a.Message == lacks; !lacking {
				t.Fatalf("agent %s: %s: %s", a.App, a.Reason, a.Message)
			}
		}
		return err == nil && ready == 5 && lacking
	})
	t.Logf("agents ready %.1f s after power on", time.Since(m.began).Seconds())
	b.startApps()
	b.waitForLog(m, "keeper", "stdout-1.log", "all seen\n")
	b.waitForLog(m, "nosy", "stdout-1.log", "all seen\n")
	b.waitForLog(m, "picture", "messages-1.jsonl", `"received"`)
	if said := b.log("keeper", "stdout-1.log"); !strings.Contains(said, fmt.Sprintf("token %x", sha256.Sum256([]byte(token)))) {
		t.Errorf("the app has another token than the Secret: %s", said)
	}
	if said := b.log("nosy", "stdout-1.log"); said != "variable []\n0\n0\nall seen\n" {
		t.Errorf("another app sees\n%s", said)
	}
	m.powerButton()
	m.waitForEnd(time.Minute)
	m.wantNowhere(token)
	m.wantNowhere(string(files["tls.key"]))
	m.wantNowhere(string(files["password"]), "root.qcow2") // Mosquitto's start script writes it down before it is hashed, in pods as well
}

// experimentWithSecrets has all on one machine.
func experimentWithSecrets() *v1alpha1.Experiment {
	from := func(key string) []v1alpha1.EnvVar {
		return []v1alpha1.EnvVar{{Name: "TOKEN", Secret: &v1alpha1.KeyReference{Name: "keys", Key: key}}}
	}
	return &v1alpha1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "vm", UID: runUID},
		Spec: v1alpha1.ExperimentSpec{
			Networks: []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24", Link: &v1alpha1.LinkModel{}}},
			Apps: []v1alpha1.App{
				{Name: "broker", Mosquitto: &v1alpha1.Mosquitto{}, Security: &v1alpha1.Security{TLS: true, Password: true}},
				{Name: "bft", Publisher: &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTT, To: "broker", Topic: "bft", Payload: "bytes:100", Period: "500ms"}},
				{Name: "picture", Subscriber: &v1alpha1.Subscriber{Protocol: v1alpha1.ProtocolMQTT, To: "broker", Topics: []string{"#"}}},
				{Name: "keeper", Command: []string{"/bin/bash", "-c", keeper}, Env: from("token")},
				{Name: "nosy", Command: []string{"/bin/bash", "-c", nosy}},
				{Name: "lacking", Command: []string{"/bin/true"}, Env: from("absent")},
			},
			Nodes: []v1alpha1.Node{{Name: "veh-1", Networks: []string{"wan"}, Apps: []string{"broker", "bft", "picture", "keeper", "nosy", "lacking"}, Runtime: v1alpha1.RuntimeVM}},
		},
	}
}

// startWithSecrets switches on a machine with the disks that KubeVirt makes of Secrets, that of brokers' security included.
func (b *bed) startWithSecrets(disks string, files map[string][]byte, secrets map[string]map[string][]byte) *machine {
	e := experimentWithSecrets()
	expanded, errs := topology.Expand(&e.Spec)
	in := render.Input{Experiment: e, Topology: expanded, Options: render.Options{
		ServerURL: "http://" + net.JoinHostPort(host, b.port()), GuestImage: "guest", GuestToolsImage: "tools", Apps: apps.Images{Traffic: "traffic", Mosquitto: "mosquitto"},
	}}
	if errs = append(errs, render.CheckVMs(in)...); len(errs) > 0 {
		b.t.Fatal(errs.ToAggregate())
	}
	m, node := b.newMachine(), render.VMNodes(in.Topology)[0]
	file, err := render.GuestFile(in, node, nil)
	m.do(err)
	vmi := render.VMs(in, time.Now(), func(topology.Node) bool { return true })[0]
	secrets[render.GuestSecretOf(vmi)] = render.GuestSecret(in, vmi, node, file, "node").Data
	secrets[render.SecurityName(e)] = files
	devices := []string{"-machine", "q35", "-m", "256"}
	for _, volume := range vmi.Spec.Volumes {
		devices = append(devices, "-drive", "if=virtio,"+m.secretVolume(disks, volume, secrets))
	}
	for i, nic := range vmi.Spec.Domain.Devices.Interfaces {
		network := "user,restrict=on"
		if nic.Masquerade != nil {
			network = "user"
		}
		devices = append(devices, "-netdev", fmt.Sprintf("%s,id=nic%d", network, i), "-device", fmt.Sprintf("virtio-net-pci,netdev=nic%d,mac=%s,romfile=", i, nic.MacAddress))
	}
	m.switchOn(devices...)
	return m
}

func (m *machine) secretVolume(disks string, v kubevirtv1.Volume, secrets map[string]map[string][]byte) string {
	switch {
	case v.Name == "tools":
		return "format=raw,readonly=on,file=" + filepath.Join(disks, "tools.img")
	case v.ContainerDisk != nil:
		root := filepath.Join(m.dir, "root.qcow2")
		m.run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", filepath.Join(disks, "guest.qcow2"), root)
		return "file=" + root
	}
	return "format=raw,readonly=on,file=" + m.diskOfSecret(v.Secret.VolumeLabel, secrets[v.Secret.SecretName])
}

// diskOfSecret is what KubeVirt 1.7 makes (pkg/config) of what the kubelet mounts of a Secret (pkg/volume/util/atomic_writer.go).
func (m *machine) diskOfSecret(label string, keys map[string][]byte) string {
	const data = "..2026_11_22_12_00_00.123456789"
	folder, image := filepath.Join(m.t.TempDir(), label), filepath.Join(m.dir, label+".iso")
	m.do(os.MkdirAll(filepath.Join(folder, data), 0o755))
	m.do(os.Symlink(data, filepath.Join(folder, "..data")))
	arguments := []string{"-output", image, "-follow-links", "-volid", label, "-joliet", "-rock", "-graft-points", "-partition_cyl_align", "on"}
	for key, value := range keys {
		m.do(os.WriteFile(filepath.Join(folder, data, key), value, 0o644))
		m.do(os.Symlink(filepath.Join("..data", key), filepath.Join(folder, key)))
	}
	entries, err := os.ReadDir(folder)
	m.do(err)
	for _, entry := range entries {
		arguments = append(arguments, entry.Name()+"="+filepath.Join(folder, entry.Name()))
	}
	m.run("xorrisofs", arguments...)
	return image
}

// wantNowhere wants a value neither in what the console and the archive have, nor on the guest's disks, but for that of its Secret and the others named.
func (m *machine) wantNowhere(value string, but ...string) {
	m.t.Helper()
	err := filepath.WalkDir(m.dir, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(name, "vgsecret") || slices.Contains(but, name) {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(value)) {
			m.t.Errorf("%s has the value of a Secret", path)
		}
		return err
	})
	m.do(err)
}
