import "@xyflow/react/dist/style.css";
import { Box, Group, Stack, Text, useComputedColorScheme } from "@mantine/core";
import { Background, Controls, Handle, Position, ReactFlow, type Connection, type Edge, type Node, type NodeChange, type NodeProps, type EdgeChange, type ReactFlowInstance } from "@xyflow/react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useForm } from "../form/context";
import { EditButton } from "../form/EditButton";
import { NetworkFields } from "../form/NetworkFields";
import { NodeFields } from "../form/NodeFields";
import { PairLinks } from "./PairLinks";
import type { Fields } from "../text/values";
import { drawingOf, layoutOf, structureOf, type Places, type Shape } from "./topology";
import classes from "./Topology.module.css";

type ShapeNode = Node<{ shape: Shape }, "shape">;

const nodeTypes = { shape: ShapeBox };

/** Topology draws nodes and networks, and changes the same document as the form. */
export function Topology() {
  const { editing, edit } = useForm();
  const scheme = useComputedColorScheme("light");
  const [moved, setMoved] = useState<ReadonlyMap<string, { x: number; y: number }>>(new Map());
  const [selected, setSelected] = useState<string>();
  const places = usePlaces(editing.spec);
  const drawing = useMemo(() => drawingOf(editing.spec, new Map([...places, ...moved])), [editing, places, moved]);
  const flow = useRef<ReactFlowInstance<ShapeNode>>(undefined);
  // Once the user has moved the view, it stays as it is.
  const hasMovedView = useRef(false);
  const noteMove = () => {
    hasMovedView.current = true;
  };
  const noteFit = () => {
    hasMovedView.current = false;
  };
  useEffect(() => {
    if (!hasMovedView.current) void flow.current?.fitView();
  }, [places]);
  const nodes = drawing.shapes.map((shape): ShapeNode => ({ id: shape.id, type: "shape", position: { x: shape.x, y: shape.y }, data: { shape }, selected: shape.id === selected, ariaLabel: `${shape.what} ${shape.name}, ${shape.detail}` }));
  const edges = drawing.lines.map((line): Edge => ({ id: line.id, source: line.source, target: line.target, sourceHandle: line.below ? "top" : "bottom", targetHandle: line.below ? "bottom" : "top", selected: line.id === selected, ariaLabel: `network ${line.network}` }));
  const connect = (connection: Connection) => {
    const ends = [connection.source, connection.target].map((id) => drawing.shapes.find((shape) => shape.id === id));
    const node = ends.find((end) => end?.what === "node");
    const network = ends.find((end) => end?.what === "network");
    if (node && network) edit(editing.connect(node.place, network.name, true));
  };
  const select = (id: string, chosen: boolean) => {
    setSelected((now) => (chosen ? id : now === id ? undefined : now));
  };
  const changeNodes = (changes: NodeChange<ShapeNode>[]) => {
    for (const change of changes) {
      if (change.type === "position" && change.position) setMoved((before) => new Map(before).set(change.id, change.position ?? { x: 0, y: 0 }));
      else if (change.type === "select") select(change.id, change.selected);
      else if (change.type === "remove") removeShape(change.id);
    }
  };
  const removeShape = (id: string) => {
    const shape = drawing.shapes.find((each) => each.id === id);
    if (shape) edit(editing.remove([shape.what === "node" ? "nodes" : "networks"], shape.place));
    setMoved(new Map());
    setSelected(undefined); // the next one has its id now
  };
  const changeEdges = (changes: EdgeChange[]) => {
    for (const change of changes) {
      if (change.type === "select") select(change.id, change.selected);
      const line = change.type === "remove" ? drawing.lines.find((each) => each.id === change.id) : undefined;
      if (line) edit(editing.connect(line.node, line.network, false));
    }
  };
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <EditButton edits={() => editing.addNode()}>Add a node</EditButton>
        <EditButton edits={() => editing.addNetwork()}>Add a network</EditButton>
        <Text size="sm" c="dimmed">
          Draw from a node to a network to connect them. Delete removes what is chosen.
        </Text>
      </Group>
      <Box className={classes.drawing}>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={nodeTypes}
          colorMode={scheme}
          onNodesChange={changeNodes}
          onEdgesChange={changeEdges}
          onConnect={connect}
          onBeforeDelete={({ nodes, edges }) => Promise.resolve({ nodes, edges: nodes.length > 0 ? [] : edges })} // lines go with their ends
          onMoveStart={(event) => {
            if (event) noteMove();
          }}
          onInit={(instance) => {
            flow.current = instance;
          }}
          deleteKeyCode={["Delete", "Backspace"]}
          connectOnClick
          fitView
          minZoom={0.1}
          proOptions={{ hideAttribution: true }}
        >
          <Background />
          <Controls showInteractive={false} onZoomIn={noteMove} onZoomOut={noteMove} onFitView={noteFit} />
        </ReactFlow>
      </Box>
      <Chosen shape={drawing.shapes.find((shape) => shape.id === selected)} />
    </Stack>
  );
}

const nowhere: Places = new Map();

/** usePlaces lays out the drawing of a spec; the places stay while its structure does. */
function usePlaces(spec: Fields): Places {
  const drawing = useMemo(() => drawingOf(spec), [spec]);
  const { data } = useQuery({ queryKey: ["layout of the drawing", structureOf(drawing)], queryFn: () => layoutOf(drawing), staleTime: Infinity, placeholderData: keepPreviousData, retry: false });
  return data ?? nowhere;
}

/** Chosen has the fields of what is chosen in the drawing. */
function Chosen({ shape }: { shape: Shape | undefined }) {
  if (!shape) return <Text size="sm">Choose a node or a network to change it.</Text>;
  if (shape.what === "node") return <NodeFields key={shape.id} place={shape.place} />;
  return (
    <Stack key={shape.id} gap="xs">
      <NetworkFields place={shape.place} />
      <PairLinks network={shape.place} />
    </Stack>
  );
}

function ShapeBox({ data: { shape }, selected }: NodeProps<ShapeNode>) {
  const network = shape.what === "network";
  return (
    <div className={[classes.shape, network ? classes.network : classes.node, selected ? classes.selected : ""].join(" ")}>
      <Handle id="top" type={network ? "target" : "source"} position={Position.Top} />
      <strong>{shape.name}</strong>
      <div className={classes.detail}>{shape.detail}</div>
      <Handle id="bottom" type={network ? "target" : "source"} position={Position.Bottom} />
    </div>
  );
}
