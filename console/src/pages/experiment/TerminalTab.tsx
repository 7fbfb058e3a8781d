import { Box, Button, Group, Select, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { expandNodes } from "../../components/topology/expand";
import { Trouble } from "../../components/Trouble";
import { useAccess, useObjects } from "../../kubernetes/hooks";
import { pods } from "../../kubernetes/kinds";
import type { Experiment } from "../../types";
import { isUp } from "./state";
import type { TabProps } from "./tab";
import { openShell, type Place } from "./terminal";
import { addToolbox, knowsToolbox, toolboxOf, toolboxTrouble, type ToolboxPod } from "./toolbox";

/** TerminalTab opens a shell on a node, for those who may. */
export default function TerminalTab({ experiment: e }: TabProps) {
  const right = { group: "", resource: "pods", subresource: "exec", namespace: e.metadata.namespace ?? "" } as const;
  const mayCreate = useAccess({ ...right, verb: "create" });
  const mayGet = useAccess({ ...right, verb: "get" });
  if (mayCreate === undefined || mayGet === undefined) return <Text>Asking Kubernetes what you may do …</Text>;
  if (!mayCreate || !mayGet) return <Text>You may not enter nodes in namespace {e.metadata.namespace}: that needs the right to get and create pods/exec.</Text>;
  if (!isUp(e)) return <Text>Nodes can be entered while the experiment is Running.</Text>;
  return <Shell experiment={e} />;
}

function Shell({ experiment: e }: { experiment: Experiment }) {
  const namespace = e.metadata.namespace ?? "";
  const { objects, error } = useObjects(pods, { namespace, labelSelector: `vignette.dev/experiment-uid=${e.metadata.uid ?? ""}` });
  const search: { node?: unknown } = useSearch({ strict: false });
  const navigate = useNavigate();
  const [app, setApp] = useState<string>();
  const [place, setPlace] = useState<Place>();
  const nodes = expandNodes(e.spec).filter((node) => !node.isVM);
  const node = nodes.find((one) => one.name === search.node) ?? nodes[0];
  const pod = objects?.find((one) => one.metadata.labels?.["vignette.dev/node"] === node?.name) as ToolboxPod | undefined;
  if (!node) return <Text>All nodes are virtual machines, which have no containers: use vignette ssh or vignette console.</Text>;
  const toolbox = pod && toolboxOf(pod);
  const containers = [...(toolbox ? [toolbox] : []), ...(pod?.spec?.containers ?? []).map((one) => one.name).filter((name) => node.apps.length === 0 || node.apps.includes(name))];
  const container = app !== undefined && containers.includes(app) ? app : containers[0];
  return (
    <Stack gap="sm">
      <Trouble error={error} title="Pods could not be read" />
      <Group align="end">
        <Select
          label="Node"
          data={nodes.map((one) => one.name)}
          value={node.name}
          searchable
          allowDeselect={false}
          disabled={place !== undefined}
          onChange={(value) => {
            void navigate({ to: ".", search: (before: object) => ({ ...before, node: value ?? undefined }), replace: true, resetScroll: false });
          }}
        />
        <Select
          label="Container"
          data={containers}
          value={container ?? null}
          allowDeselect={false}
          disabled={place !== undefined}
          onChange={(value) => {
            setApp(value ?? undefined);
          }}
        />
        {place ? (
          <Button
            variant="default"
            id="close-shell"
            onClick={() => {
              setPlace(undefined);
            }}
          >
            Close the shell
          </Button>
        ) : (
          <Button
            disabled={!pod || container === undefined}
            onClick={() => {
              if (pod && container !== undefined) setPlace({ namespace, pod: pod.metadata.name, container });
            }}
          >
            Open a shell
          </Button>
        )}
        {pod && !toolbox && !place && <AddToolbox pod={pod} />}
      </Group>
      {place ? <Screen key={`${place.pod} ${place.container}`} place={place} /> : <Text size="sm">What you do in a shell goes over the node's radios, and is not recorded. Images of the traffic generator have no shell: use the toolbox there.</Text>}
    </Stack>
  );
}

function AddToolbox({ pod }: { pod: ToolboxPod }) {
  const may = useAccess({ verb: "patch", group: "", resource: "pods", subresource: "ephemeralcontainers", namespace: pod.metadata.namespace ?? "" });
  const add = useMutation({ mutationFn: () => addToolbox(pod) });
  if (!may || !knowsToolbox(pod)) return null;
  const trouble = toolboxTrouble(pod);
  return (
    <>
      <Button
        variant="default"
        loading={add.isPending}
        onClick={() => {
          add.mutate();
        }}
      >
        Add the toolbox
      </Button>
      {trouble && <Text size="sm">{trouble}</Text>}
      <Trouble error={add.error} title="The toolbox was refused" />
    </>
  );
}

function Screen({ place }: { place: Place }) {
  const element = useRef<HTMLDivElement>(null);
  const [end, setEnd] = useState("");
  useEffect(() => {
    if (!element.current) return;
    return openShell(element.current, place, setEnd, () => document.getElementById("close-shell")?.focus());
  }, [place]);
  return (
    <Stack gap="xs">
      <Box ref={element} h="min(60vh, 40rem)" bg="black" p={4} />
      <Text size="sm" role="status">
        {end || "F6 leaves the terminal by keyboard."}
      </Text>
    </Stack>
  );
}
