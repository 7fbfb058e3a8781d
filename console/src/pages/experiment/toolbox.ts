import { askJSON, pathOf } from "../../kubernetes/client";
import { pods, type Pod } from "../../kubernetes/kinds";

/** A pod with the containers that were added to it. */
export type ToolboxPod = Pod & {
  spec?: { ephemeralContainers?: { name: string }[] };
  status?: { ephemeralContainerStatuses?: { name: string; state?: { running?: object; waiting?: { reason?: string; message?: string }; terminated?: { reason?: string } } }[] };
};

const prefix = "toolbox-";
const annotation = "vignette.dev/toolbox-image";

/** toolboxOf a pod that runs; undefined if there is none. */
export function toolboxOf(pod: ToolboxPod): string | undefined {
  return pod.status?.ephemeralContainerStatuses?.find((one) => one.name.startsWith(prefix) && one.state?.running !== undefined)?.name;
}

/** toolboxTrouble says why a toolbox that was added does not start yet. */
export function toolboxTrouble(pod: ToolboxPod): string | undefined {
  const last = pod.status?.ephemeralContainerStatuses?.findLast((one) => one.name.startsWith(prefix));
  const waiting = last?.state?.waiting;
  return waiting ? `The toolbox does not run yet: ${waiting.reason ?? "waiting"}${waiting.message ? `, ${waiting.message}` : ""}` : undefined;
}

/** knowsToolbox reports whether the operator has named the image of a pod's toolbox. */
export function knowsToolbox(pod: Pod): boolean {
  return Boolean(pod.metadata.annotations?.[annotation]);
}

/** addToolbox adds a container with network tools to a node's pod, as `vignette shell --toolbox` does. It stays until the node ends. */
export async function addToolbox(pod: ToolboxPod): Promise<void> {
  const number = (pod.spec?.ephemeralContainers?.length ?? 0) + 1;
  const container = {
    name: `${prefix}${number}`,
    image: pod.metadata.annotations?.[annotation] ?? "",
    imagePullPolicy: "IfNotPresent",
    command: ["/bin/sleep", "infinity"],
    securityContext: { allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: { drop: ["ALL"] }, seccompProfile: { type: "RuntimeDefault" } },
  };
  await askJSON(`${pathOf(pods, pod.metadata.namespace, pod.metadata.name)}/ephemeralcontainers?fieldManager=vignette-console`, {
    method: "PATCH",
    headers: { "content-type": "application/strategic-merge-patch+json" },
    body: JSON.stringify({ metadata: { resourceVersion: pod.metadata.resourceVersion }, spec: { ephemeralContainers: [container] } }),
  });
}
