//go:build guest

package guest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"vignette.dev/vignette/internal/core/render"
	"vignette.dev/vignette/internal/core/topology"
	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testport"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// settled is how long what manages the network of a distribution has to undo what the agent has set up, after the node was ready.
const settled = 20 * time.Second

// TestADebianOfOnesOwnIsANode begins from images/guest-debian what the operator asks of KubeVirt, with the disks that KubeVirt makes of it.
func TestADebianOfOnesOwnIsANode(t *testing.T) {
	disks := disksFor(t, "xorrisofs", "ssh", "ssh-keygen")
	for name, c := range map[string]struct {
		vm v1alpha1.VirtualMachine
		// command is run in the guest, and prints want.
		command string
		want    []string
	}{
		"by cloud-init": {
			v1alpha1.VirtualMachine{CloudInit: &v1alpha1.CloudInit{UserData: "#cloud-config\nssh_genkeytypes: [ed25519]\nwrite_files:\n- {path: /etc/team, content: by cloud-init}\n"}},
			"cat /etc/team; echo; cloud-init status --long --wait", []string{"by cloud-init", "status: done"},
		},
		"by Ignition": {
			v1alpha1.VirtualMachine{Ignition: `{"ignition": {"version": "3.3.0"},
				"passwd": {"users": [{"name": "scout", "uid": 4711}]},
				"storage": {"files": [{"path": "/etc/team", "mode": 384, "contents": {"source": "data:,by%20Ignition"}}]},
				"systemd": {"units": [{"name": "team.service", "enabled": true, "contents": "[Service]\nType=oneshot\nExecStart=/bin/touch /run/team-was-here\n[Install]\nWantedBy=multi-user.target\n"}]}}`},
			"cat /etc/team; echo; stat -c %a /etc/team; id -u scout; ls /run/team-was-here", []string{"by Ignition\n600\n", "4711", "/run/team-was-here"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, public := testtool.SSHKey(t)
			c.vm.Image, c.vm.SSHKeys = "localhost/team/debian:1", []string{public}
			b := newBed(t, runapi.PlannedApp{Name: "probe", Kind: "image", Instances: []string{"veh-1/probe"}},
				runapi.PlannedApp{Name: "bft", Kind: "traffic", Instances: []string{"veh-1/bft"}, Publishes: true, Brokers: []string{"wan"}})
			m := b.startAsKubeVirt(disks, c.vm)
			ready := b.waitForAgents(m, runapi.AgentReady)
			t.Logf("agents ready %.1f s after power on; QEMU had used %.1f s of processor time", time.Since(m.began).Seconds(), m.processorTime().Seconds())
			b.checkClock(ready)
			b.checkStart(m, b.startApps(), ready[0].Clock)
			b.waitForLog(m, "probe", "stdout-1.log", "all seen\n")
			b.waitForLog(m, "bft", "messages-1.jsonl", `"sent"`)
			time.Sleep(settled)
			m.wantFrom(key, c.command, c.want...)
			m.wantFrom(key, "hostname; ip -o -4 address show wan; ip -4 route get 198.18.9.2; getent hosts hq; systemctl is-active vignette-guest",
				"veh-1\n", "inet 198.18.9.1/24", "198.18.9.2 dev wan", "198.18.9.2 ", "\nactive\n")
			m.powerButton()
			b.waitForAgents(m, runapi.AgentDone)
			m.waitForEnd(2 * time.Minute)
		})
	}
}

// experiment with one machine, and another node that is only named.
func (b *bed) experiment(vm v1alpha1.VirtualMachine) *v1alpha1.Experiment {
	say := fmt.Sprintf(`exec 3<>/dev/tcp/%s/%s; printf 'GET /mark HTTP/1.0\r\n\r\n' >&3; exec 3>&-; echo "all seen"; exec sleep 1000`, host, b.port())
	return &v1alpha1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "vm", UID: runUID},
		Spec: v1alpha1.ExperimentSpec{
			Networks: []v1alpha1.Network{{Name: "wan", Subnet: "198.18.9.0/24", Link: &v1alpha1.LinkModel{}}},
			Apps: []v1alpha1.App{{Name: "probe", Command: []string{"/bin/bash", "-c", say}},
				{Name: "bft", Publisher: &v1alpha1.Publisher{Protocol: v1alpha1.ProtocolMQTTUDP, Period: "500ms"}}},
			Nodes: []v1alpha1.Node{
				{Name: "veh-1", Networks: []string{"wan"}, Apps: []string{"probe", "bft"}, Runtime: v1alpha1.RuntimeVM, VM: &vm},
				{Name: "hq", Networks: []string{"wan"}},
			},
		},
	}
}

// startAsKubeVirt switches on what the operator asks KubeVirt for. Disks are made by the program and with the arguments by which KubeVirt makes them
// (pkg/config and pkg/cloud-init of KubeVirt 1.7).
func (b *bed) startAsKubeVirt(disks string, vm v1alpha1.VirtualMachine) *machine {
	e := b.experiment(vm)
	expanded, errs := topology.Expand(&e.Spec)
	in := render.Input{Experiment: e, Topology: expanded, Options: render.Options{ServerURL: b.http.URL, GuestToolsImage: "localhost/tools:1"}}
	in.Options.ServerURL = "http://" + net.JoinHostPort(host, b.port())
	if errs = append(errs, render.CheckVMs(in)...); len(errs) > 0 {
		b.t.Fatal(errs.ToAggregate())
	}
	node := render.VMNodes(in.Topology)[0]
	m := b.newMachine()
	file, err := render.GuestFile(in, node, nil)
	m.do(err)
	vmi := render.VM(in, node, time.Now())
	secret := render.GuestSecret(in, vmi, node, file, "node").Data

	m.ssh = testport.Free(b.t)
	devices := []string{"-machine", "q35", "-m", fmt.Sprint(vmi.Spec.Domain.Memory.Guest.Value() >> 20)}
	for i, volume := range vmi.Spec.Volumes {
		devices = append(devices, "-drive", "if=virtio,"+m.volume(disks, volume, vmi.Spec.Domain.Devices.Disks[i], secret))
	}
	for i, nic := range vmi.Spec.Domain.Devices.Interfaces {
		network := "user,restrict=on"
		if nic.Masquerade != nil {
			network = fmt.Sprintf("user,hostfwd=tcp:127.0.0.1:%d-:22", m.ssh)
		}
		devices = append(devices, "-netdev", fmt.Sprintf("%s,id=nic%d", network, i), "-device", fmt.Sprintf("virtio-net-pci,netdev=nic%d,mac=%s,romfile=", i, nic.MacAddress))
	}
	if ignition := vmi.Annotations[kubevirtv1.IgnitionAnnotation]; ignition != "" {
		config := filepath.Join(m.dir, "data.ign")
		m.do(os.WriteFile(config, []byte(ignition), 0o600))
		devices = append(devices, "-fw_cfg", "name=opt/com.coreos/config,file="+config)
	}
	m.switchOn(devices...)
	return m
}

// volume gives QEMU's options for a disk, which it makes.
func (m *machine) volume(disks string, v kubevirtv1.Volume, disk kubevirtv1.Disk, secret map[string][]byte) string {
	switch {
	case v.Name == "tools":
		return "format=raw,readonly=on,file=" + filepath.Join(disks, "tools.img")
	case v.ContainerDisk != nil:
		root := filepath.Join(m.dir, "root.qcow2")
		m.run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", filepath.Join(disks, "debian.qcow2"), root)
		return "file=" + root
	case v.Secret != nil:
		return "format=raw,readonly=on,file=" + m.iso(v.Secret.VolumeLabel, secret)
	case v.CloudInitNoCloud != nil:
		return "format=raw,file=" + m.iso("cidata", map[string][]byte{
			"meta-data": []byte(`{"instance-id":"5a9fc181-957e-5c32-9e5a-2de5e9673531","local-hostname":"veh-1"}`),
			"user-data": secret[render.UserDataKey], "network-config": secret[render.NetworkDataKey],
		})
	}
	m.t.Fatalf("disk %s: what is %+v?", disk.Name, v)
	return ""
}

func (m *machine) iso(label string, files map[string][]byte) string {
	folder, image := filepath.Join(m.dir, label), filepath.Join(m.dir, label+".iso")
	m.do(os.Mkdir(folder, 0o700))
	for name, content := range files {
		m.do(os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	m.run("xorrisofs", "-quiet", "-output", image, "-volid", label, "-joliet", "-rock", "-partition_cyl_align", "on", folder)
	return image
}

// wantFrom wants a command's output, of root who logs in by SSH with a key of the spec, to have each text.
func (m *machine) wantFrom(key, command string, want ...string) {
	m.t.Helper()
	var out []byte
	m.wait("SSH", time.Minute, func() bool {
		var err error
		out, err = exec.Command("ssh", "-i", key, "-p", fmt.Sprint(m.ssh), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
			"-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "root@127.0.0.1", command).CombinedOutput()
		if exit, ended := err.(*exec.ExitError); ended && exit.ExitCode() == 255 {
			return false // SSH's own
		}
		return true
	})
	m.t.Logf("$ %s\n%s", command, out)
	for _, text := range want {
		if !strings.Contains("\n"+string(out), text) {
			m.t.Errorf("%s: no %q in it", command, text)
		}
	}
}
