import { Button, Group, Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { expandNodes } from "../../components/topology/expand";
import { Trouble } from "../../components/Trouble";
import { create } from "../../kubernetes/client";
import { captures as kind } from "../../kubernetes/kinds";
import type { Experiment } from "../../types";
import { captureObject, type Wanted } from "./captures";

/** NewCapture is the form of a capture of a running experiment. */
export function NewCapture({ experiment: e }: { experiment: Experiment }) {
  const networks = e.spec.networks.map((network) => network.name);
  const [wanted, setWanted] = useState<Wanted>({ network: networks[0] ?? "", node: "", filter: "", duration: "", limit: "64Mi" });
  const make = useMutation({ mutationFn: () => create(kind, e.metadata.namespace, captureObject(e, wanted)) });
  const nodes = expandNodes(e.spec).filter((node) => node.networks.includes(wanted.network));
  const set = (change: Partial<Wanted>) => {
    setWanted({ ...wanted, ...change });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate();
      }}
    >
      <Group align="end" gap="xs">
        <Select
          label="Network"
          data={networks}
          value={wanted.network}
          allowDeselect={false}
          w={140}
          onChange={(network) => {
            set({ network: network ?? "", node: "" });
          }}
        />
        <Select
          label="Node"
          placeholder="all of the network"
          data={nodes.map((node) => node.name)}
          value={wanted.node || null}
          clearable
          searchable
          w={180}
          onChange={(node) => {
            set({ node: node ?? "" });
          }}
        />
        <Text label="Filter" placeholder="tcp port 1883" value={wanted.filter} onChange={(filter) => { set({ filter }); }} />
        <Text label="Duration" placeholder="until it is ended" value={wanted.duration} onChange={(duration) => { set({ duration }); }} />
        <Text label="Limit" placeholder="256Mi" value={wanted.limit} onChange={(limit) => { set({ limit }); }} />
        <Button type="submit" variant="default" loading={make.isPending}>
          Capture
        </Button>
      </Group>
      <Trouble error={make.error} title="The capture was refused" />
    </form>
  );
}

interface TextProps {
  label: string;
  placeholder: string;
  value: string;
  onChange: (value: string) => void;
}

function Text({ label, placeholder, value, onChange }: TextProps) {
  return (
    <TextInput
      label={label}
      placeholder={placeholder}
      value={value}
      w={150}
      onChange={(event) => {
        onChange(event.currentTarget.value);
      }}
    />
  );
}
