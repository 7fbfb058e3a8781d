import "@xyflow/react/dist/style.css";
import { useComputedColorScheme } from "@mantine/core";
import { Background, Controls, Handle, Position, ReactFlow, type Edge, type Node, type NodeProps } from "@xyflow/react";
import { useMemo } from "react";
import { palette } from "../../theme/palette";
import type { Topology } from "./graph";
import { idOf, type Layout } from "./layout";
import classes from "./topology.module.css";

type Drawn = Node<{ title: string; note: string; mark: string }>;

// A type of the name group has a style of the library's own.
const kinds = { box: GroupBox, member: Tile, network: Cloud };

interface TopologyViewProps {
  topology: Topology;
  layout: Layout;
  /** showsClients draws the ways from apps to their brokers too. */
  showsClients: boolean;
}

/** TopologyView draws a topology, to look at. */
export function TopologyView({ topology, layout, showsClients }: TopologyViewProps) {
  const scheme = useComputedColorScheme("light");
  const nodes = useMemo(() => nodesOf(topology, layout), [topology, layout]);
  const edges = useMemo(() => edgesOf(topology, showsClients), [topology, showsClients]);
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={kinds}
      colorMode={scheme}
      fitView
      minZoom={0.05}
      onlyRenderVisibleElements={nodes.length > 200}
      nodesDraggable={false}
      nodesConnectable={false}
      edgesFocusable={false}
      aria-label="Topology: groups of nodes and their networks"
    >
      <Background />
      <Controls showInteractive={false} />
    </ReactFlow>
  );
}

function nodesOf(topology: Topology, layout: Layout): Drawn[] {
  const drawn: Drawn[] = [];
  const add = (id: string, type: keyof typeof kinds, data: Drawn["data"], label: string, parentId?: string) => {
    const place = layout.get(id);
    if (!place) return;
    const { x, y, width, height } = place;
    drawn.push({ id, type, position: { x, y }, width, height, data, ariaLabel: label, ...(parentId !== undefined && { parentId }) });
  };
  for (const { name, members } of topology.groups) {
    const title = members.length === 1 ? name : `${name} (${members.length})`;
    add(idOf.group(name), "box", { title, note: "", mark: "" }, `Group ${name} with ${members.length} nodes`);
    for (const member of members) {
      const data = { title: member.name, note: member.apps.join(", "), mark: member.brokers.length > 0 ? "◆" : "" };
      add(idOf.member(member.name), "member", data, `Node ${member.name}, apps ${member.apps.join(", ") || "none"}, networks ${member.networks.join(", ") || "none"}`, idOf.group(name));
    }
  }
  for (const { name, subnet, model } of topology.networks) {
    add(idOf.network(name), "network", { title: name, note: [model, subnet].filter(Boolean).join(" "), mark: "" }, `Network ${name}, ${model}, ${subnet}`);
  }
  return drawn;
}

function edgesOf(topology: Topology, showsClients: boolean): Edge[] {
  const attached = topology.attachments.map((a): Edge => ({
    id: `${a.group} on ${a.network}`,
    type: "straight",
    source: idOf.group(a.group),
    target: idOf.network(a.network),
    ...(a.members < a.of && { label: `${a.members} of ${a.of}` }),
    style: { strokeWidth: 2 },
  }));
  const passing = topology.passages
    .filter((passage) => showsClients || passage.kind === "broker")
    .map((passage): Edge => ({
      id: `${passage.kind} ${passage.from} ${passage.to}`,
      source: idOf.member(passage.from),
      target: idOf.member(passage.to),
      label: passage.label,
      zIndex: 2,
      style: { stroke: passage.kind === "broker" ? palette.orange : palette.sky, strokeWidth: 2, strokeDasharray: passage.kind === "broker" ? "6 4" : "2 3" },
    }));
  return [...attached, ...passing];
}

// Edges end in the middle of what they join.
function Ends() {
  return (
    <>
      <Handle type="target" position={Position.Top} className={classes.end ?? ""} isConnectable={false} />
      <Handle type="source" position={Position.Top} className={classes.end ?? ""} isConnectable={false} />
    </>
  );
}

function GroupBox({ data }: NodeProps<Drawn>) {
  return (
    <div className={classes.group}>
      <Ends />
      {data.title}
    </div>
  );
}

function Tile({ data }: NodeProps<Drawn>) {
  return (
    <div className={classes.member} title={`${data.title}: ${data.note}`}>
      <Ends />
      <strong>
        {data.mark} {data.title}
      </strong>
      <span>{data.note}</span>
    </div>
  );
}

function Cloud({ data }: NodeProps<Drawn>) {
  return (
    <div className={classes.network} title={`${data.title}: ${data.note}`}>
      <Ends />
      <strong>{data.title}</strong>
      <span>{data.note}</span>
    </div>
  );
}
