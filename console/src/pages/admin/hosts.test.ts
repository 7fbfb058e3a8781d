// @vitest-environment node
import { expect, test } from "vitest";
import type { Pod } from "../../kubernetes/kinds";
import { hostRows, latenessText, type KubernetesNode, type Lateness } from "./hosts";
import { knownText } from "./useLateness";

const ready: KubernetesNode = { metadata: { name: "a" }, status: { conditions: [{ type: "Ready", status: "True" }], nodeInfo: { kubeletVersion: "v1.34.4", kernelVersion: "6.1.0" } } };
const radiod: Pod = {
  metadata: { name: "vignette-radiod-x", labels: { "app.kubernetes.io/name": "vignette-radiod", "app.kubernetes.io/version": "0.1.0" } },
  spec: { nodeName: "a" },
  status: { phase: "Running", containerStatuses: [{ name: "radiod", ready: true, restartCount: 1 }] },
};
const node: Pod = { metadata: { name: "exp-hq" }, spec: { nodeName: "a" }, status: { phase: "Running" } };
const run: Lateness = { hosts: ["a"], lateReleases: 3, slotsMissed: 0, worstSeconds: 0.0042 };

test("a host shows its radiod, its nodes and how late their runs are", () => {
  const [row] = hostRows([ready], [radiod], [node], [], [run]);
  expect(row).toMatchObject({ state: "takes pods", isBad: false, radiod: "ready, 0.1.0, 1 restart", radiodIsBad: false, nodes: 1, versions: "v1.34.4, Linux 6.1.0", lateness: "3 frames late, worst 4.2 ms" });
});

test("a host without radiod is bad, as no radio can be emulated there", () => {
  expect(hostRows([ready], [{ ...radiod, spec: { nodeName: "b" } }], [], [], [])[0]).toMatchObject({ radiod: "no radiod", radiodIsBad: true, nodes: 0 });
});

const free: KubernetesNode = { ...ready, metadata: { name: "a", labels: { "vignette.dev/experiments": "false" } } };

test("a host that is kept free needs no radiod, unless nodes still run there, and none that fails", () => {
  expect(hostRows([free], [], [], [], [])[0]).toMatchObject({ radiod: "no radiod", radiodIsBad: false });
  expect(hostRows([free], [], [node], [], [])[0]).toMatchObject({ radiod: "no radiod", radiodIsBad: true });
  expect(hostRows([free], [{ ...radiod, status: { phase: "Pending" } }], [], [], [])[0]).toMatchObject({ radiod: "not ready (Pending), 0.1.0, 0 restarts", radiodIsBad: true });
});

test.each([
  [free, "kept free of experiments"],
  [{ ...ready, metadata: { name: "a", labels: { "kubernetes.io/os": "windows" } } }, "runs Windows"],
])("a host that is for something else says so, and is not bad (%#)", (host, state) => {
  expect(hostRows([host], [], [], [], [])[0]).toMatchObject({ state, isBad: false });
});

test.each([
  [{ ...ready, spec: { unschedulable: true } }, "cordoned"],
  [{ ...ready, status: { conditions: [{ type: "Ready", status: "Unknown", message: "kubelet stopped posting" }] } }, "not ready: kubelet stopped posting"],
  [{ metadata: { name: "a" } }, "not ready: it has not reported"],
])("a host that takes no pods says why (%#)", (host, state) => {
  expect(hostRows([host], [], [], [], [])[0]).toMatchObject({ state, isBad: true });
});

test("a host that takes no pods for another reason is tainted", () => {
  const none = { cpu: 1, memoryBytes: 1, pods: 1 };
  expect(hostRows([ready], [], [], [{ name: "a", usable: false, allocatable: none }], [])[0]?.state).toBe("tainted");
});

test("missed slots are told beside late frames", () => {
  expect(latenessText([run, { ...run, lateReleases: 0, slotsMissed: 1, worstSeconds: 0.01 }], 1)).toBe("3 frames late, 1 slot missed, worst 10.0 ms");
});

test("a host is called punctual or empty only where that is known", () => {
  expect([latenessText([], 0), latenessText([{ ...run, lateReleases: 0 }], 1)]).toEqual(["nothing runs", "no frame late"]);
  expect([latenessText([], 3), latenessText([], undefined)]).toEqual(["not known", "not known"]);
  expect(hostRows([ready], [radiod], undefined, [], [])[0]).toMatchObject({ nodes: undefined, lateness: "not known" });
});

test("the page says of how many running experiments it does not know the lateness", () => {
  expect(knownText(20, 35)).toBe("Emulation is that of 20 of 35 running experiments. The page asks the archive for 20 at most.");
  expect(knownText(2, 2)).toBe("");
});
