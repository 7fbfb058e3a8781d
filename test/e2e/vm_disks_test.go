//go:build e2e && vm

package e2e

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"vignette.dev/vignette/internal/runapi"
	"vignette.dev/vignette/internal/testtool"
	"vignette.dev/vignette/operators/api/v1alpha1"
)

// debianImage is a Debian with cloud-init and Ignition and without any part of the platform, from images/guest-debian.
func debianImage(t *testing.T) string {
	return strings.Replace(mosquittoImage(t), "mosquitto", "guest-debian", 1)
}

const (
	userData = "#cloud-config\nssh_genkeytypes: [ed25519]\nwrite_files:\n- {path: /etc/team, content: by cloud-init}\n"
	ignition = `{"ignition": {"version": "3.3.0"},
		"passwd": {"users": [{"name": "scout", "uid": 4711}]},
		"storage": {"files": [{"path": "/etc/team", "mode": 384, "contents": {"source": "data:,by%20Ignition"}}]},
		"systemd": {"units": [{"name": "team.service", "enabled": true,
			"contents": "[Service]\nType=oneshot\nExecStart=/bin/touch /run/team-was-here\n[Install]\nWantedBy=multi-user.target\n"}]}}`
	claimName = "disk"
)

// ownDisks is an experiment with a broker in a pod, and machines with the user's own disks, which publish one message a second from
// T0+10 s on: a Debian set up by cloud-init, the same set up by Ignition, and a disk in a claim, which needs neither.
func ownDisks(t *testing.T, namespace, public string) *v1alpha1.Experiment {
	b := makeExperiment(namespace, "own-disks").Duration("60s").Network("wan", "198.18.9.0/24", "baseline").
		Broker("broker").Publisher("bft", "broker", "1s", 1).Payload("bytes:200").Subscriber("picture", "broker").
		Node("hq", "wan", "broker", "picture").Node("clouded", "wan", "bft", "picture").Node("ignited", "wan", "bft", "picture").Node("claimed", "wan", "bft").
		Start("5s", "bft").Stop("45s", "bft")
	b.Spec.Apps[1].Publisher.Lead = "5s"
	for i, vm := range []*v1alpha1.VirtualMachine{
		{Image: debianImage(t), SSHKeys: []string{public}, CloudInit: &v1alpha1.CloudInit{UserData: userData}},
		{Image: debianImage(t), SSHKeys: []string{public}, Ignition: ignition},
		{PersistentVolumeClaim: claimName},
	} {
		b.Spec.Nodes[i+1].Runtime, b.Spec.Nodes[i+1].VM = v1alpha1.RuntimeVM, vm
	}
	return b.Obj()
}

// TestVMsFromDisksOfOnesOwnAreNodesLikeAnyOther boots them side by side.
func TestVMsFromDisksOfOnesOwnAreNodesLikeAnyOther(t *testing.T) {
	needsKubeVirt(t)
	if _, err := buildVignette(); err != nil {
		t.Fatal(err)
	}
	namespace := newNamespace(t)
	before := fillClaim(t, namespace)
	key, public := testtool.SSHKey(t)
	e := ownDisks(t, namespace, public)
	mustCreate(t, e)
	logBoots(t, e)
	e = waitForBoot(t, e)
	t.Run("cloud-init did what it was told", func(t *testing.T) {
		wantFromGuest(t, e, key, "clouded", "cat /etc/team; echo; cloud-init status --long --wait", "by cloud-init\n", "status: done")
	})
	t.Run("Ignition did what it was told", func(t *testing.T) {
		wantFromGuest(t, e, key, "ignited", "cat /etc/team; echo; stat -c %a /etc/team; id -u scout; ls /run/team-was-here", "by Ignition\n600\n4711\n/run/team-was-here\n")
	})
	for _, node := range []string{"clouded", "ignited"} {
		wantFromGuest(t, e, key, node, "hostname; ip -o -4 address show wan; systemctl is-active vignette-guest.service", node+"\n", "198.18.9.", "\nactive\n")
	}
	done := waitFor(t, e, finishTimeout, v1alpha1.PhaseSucceeded)
	results := resultsOf(t, done.UID)
	if m := results.Messages; m.Sent < 3*33 || m.Expected != 3*m.Sent || m.Received != m.Expected {
		t.Errorf("messages: %+v; want 35 of each of 3 machines, and each with the 3 that subscribe", m)
	}
	var clocks []string
	for _, c := range results.Clocks {
		clocks = append(clocks, c.Node)
	}
	if slices.Sort(clocks); !slices.Equal(clocks, []string{"claimed", "clouded", "ignited"}) {
		t.Errorf("the results state the clocks of %v; want those of all machines", clocks)
	}
	deleteAndExpectNoMachineLeft(t, done)
	inClaim(t, namespace, func(pod string) {
		if after := claimSum(t, namespace, pod); after != before {
			t.Errorf("after the run the claim's disk has the SHA-256 %s; want it as it was, %s", after, before)
		}
	})
}

func wantFromGuest(t *testing.T, e *v1alpha1.Experiment, key, node, command string, want ...string) {
	t.Helper()
	out, errs, code := vignette(t, e.Namespace, "", "ssh", "-i", key, node, "--", command)
	t.Logf("%s: %s\n%s", node, command, out)
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("%s: %s: exit code %d, %q, %q; want %q", node, command, code, out, errs, text)
		}
	}
}

// logBoots logs how long after its QEMU's container each of an experiment's machines is ready.
func logBoots(t *testing.T, e *v1alpha1.Experiment) {
	t.Helper()
	ready := map[string]bool{}
	deadline := time.Now().Add(2 * bootTimeout) // a distribution's own
	for machines := len(e.Spec.Nodes) - 1; len(ready) < machines && time.Now().Before(deadline); time.Sleep(time.Second) {
		now := get(t, e)
		if now.Status.Phase == v1alpha1.PhaseFailed {
			t.Fatalf("it failed: %s", now.Status.Message)
		}
		var state runapi.State
		if err := readArchive(t.Context(), "runs/"+string(e.UID), nil, &state); err != nil {
			continue // nothing has been written yet
		}
		for _, agent := range state.Agents {
			if (agent.Phase == runapi.AgentReady || agent.Phase == runapi.AgentRunning) && agent.Node != "hq" && !ready[agent.Node] {
				ready[agent.Node] = true
				t.Logf("%s: ready %.0f s after its container had started", agent.Node, time.Since(computeStarted(t, now, agent.Node)).Seconds())
			}
		}
	}
	t.Logf("ready: %v", slices.Sorted(maps.Keys(ready)))
}

func computeStarted(t *testing.T, e *v1alpha1.Experiment, node string) time.Time {
	t.Helper()
	for _, status := range launcherOf(t, e, node).Status.ContainerStatuses {
		if status.Name == "compute" && status.State.Running != nil {
			return status.State.Running.StartedAt.Time
		}
	}
	return time.Now()
}

// fillClaim makes a claim and writes the platform's guest into it, as the raw file disk.img that KubeVirt needs. It returns the file's SHA-256.
func fillClaim(t *testing.T, namespace string) (sum string) {
	t.Helper()
	disks := os.Getenv("VIGNETTE_GUEST_DISKS")
	if disks == "" {
		t.Fatal("VIGNETTE_GUEST_DISKS is empty: want the folder with guest.qcow2, which make test-vm makes")
	}
	folder := t.TempDir()
	if text, err := exec.Command("qemu-img", "convert", "-O", "raw", filepath.Join(disks, "guest.qcow2"), filepath.Join(folder, "disk.img")).CombinedOutput(); err != nil {
		t.Fatalf("qemu-img: %v: %s (Debian: qemu-utils)", err, text)
	}
	mustCreate(t, &corev1.PersistentVolumeClaim{
		ObjectMeta: forExperiments(namespace, claimName),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}},
		},
	})
	inClaim(t, namespace, func(pod string) {
		tar := exec.Command("tar", "--create", "--sparse", "--directory", folder, "disk.img")
		stream, err := tar.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := tar.Start(); err != nil {
			t.Fatal(err)
		}
		feedTo(t, stream, namespace, pod, "main", "tar", "--extract", "--no-same-owner", "--directory", "/claim")
		if err := tar.Wait(); err != nil {
			t.Fatalf("tar: %v", err)
		}
		sum = claimSum(t, namespace, pod)
	})
	return sum
}

// claimSum returns the disk's checksum. An exec sometimes loses the last output of a program.
func claimSum(t *testing.T, namespace, pod string) (sum string) {
	t.Helper()
	eventually(t, startTimeout, "the SHA-256 of the claim's disk", func() error {
		said := execIn(t, namespace, pod, "main", "sha256sum", "/claim/disk.img")
		if fields := strings.Fields(said); len(fields) == 2 && len(fields[0]) == 64 {
			sum = fields[0]
			return nil
		}
		return errorf("sha256sum says %q", said)
	})
	return sum
}

// inClaim runs a function with a pod that has the claim at /claim, and deletes the pod.
func inClaim(t *testing.T, namespace string, do func(pod string)) {
	t.Helper()
	const user = 65532
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "claim-"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To(int64(0)), RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(user)), RunAsGroup: ptr.To(int64(user)), FSGroup: ptr.To(int64(user)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "main", Image: mosquittoImage(t), Command: []string{"sleep", "1000"}, VolumeMounts: []corev1.VolumeMount{{Name: "claim", MountPath: "/claim"}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
			Volumes: []corev1.Volume{{Name: "claim", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName}}}},
		},
	}
	eventually(t, startTimeout, "a pod with the claim to be accepted", func() error { return kube.Create(t.Context(), pod) })
	defer func() {
		if err := kube.Delete(context.WithoutCancel(t.Context()), pod); err != nil {
			t.Errorf("delete pod %s: %v", pod.Name, err)
		}
	}()
	eventually(t, startTimeout, "the pod with the claim to run", func() error {
		if err := kube.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.Status.Phase != corev1.PodRunning {
			return errorf("%s: %v", pod.Status.Phase, err)
		}
		return nil
	})
	do(pod.Name)
}
