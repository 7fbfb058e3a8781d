import { Button, Checkbox, CloseButton, Group, Loader, Paper, Pill, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useFirstNamespace } from "../../app/scope";
import type { ComparedRun, RunName } from "../../archive/comparison";
import { runsQuery } from "../../archive/runs";
import type { RunSummary } from "../../archive/types";
import { runSize, yesOrNo } from "../../components/figures";
import { Age } from "../../components/Moment";
import { NamespaceInput } from "../../components/NamespaceInput";
import { RunLink } from "../../components/RunLink";
import { Trouble } from "../../components/Trouble";
import { VirtualTable, type Column } from "../../components/VirtualTable";
import { pickable } from "./pickable";

interface RunPickerProps {
  runs: readonly RunName[];
  compared: readonly ComparedRun[];
  onChange: (runs: RunName[]) => void;
}

/** RunPicker shows which runs are compared. Others are added from a list with search. */
export function RunPicker({ runs, compared, onChange }: RunPickerProps) {
  const [open, { toggle }] = useDisclosure(runs.length < 2);
  return (
    <Paper withBorder p="sm">
      <Group gap="xs">
        {runs.slice(0, 40).map((run) => (
          <Chosen
            key={run.uid}
            name={compared.find(({ uid }) => uid === run.uid)?.experiment ?? `${run.namespace}/${run.uid.slice(0, 8)}`}
            onRemove={() => {
              onChange(runs.filter(({ uid }) => uid !== run.uid));
            }}
          />
        ))}
        {runs.length > 40 && <Text size="sm">and {runs.length - 40} more</Text>}
        <Button size="compact-sm" variant="default" onClick={toggle} aria-expanded={open}>
          {open ? "Close the list of runs" : "Add runs"}
        </Button>
      </Group>
      {open && <RunList runs={runs} onChange={onChange} />}
    </Paper>
  );
}

function Chosen({ name, onRemove }: { name: string; onRemove: () => void }) {
  return (
    <Pill size="md">
      <Group gap={4} wrap="nowrap">
        {name}
        <CloseButton size="xs" aria-label={`Leave out ${name}`} onClick={onRemove} />
      </Group>
    </Pill>
  );
}

function RunList({ runs, onChange }: Omit<RunPickerProps, "compared">) {
  const first = useFirstNamespace();
  const [typed, setTyped] = useState<string>();
  const [search, setSearch] = useState("");
  const everywhere = useQuery({ ...runsQuery(undefined), retry: false });
  const namespace = typed ?? runs[0]?.namespace ?? first;
  // Who may not read all namespaces names one.
  const one = useQuery({ ...runsQuery(namespace), enabled: everywhere.isError && namespace !== "" });
  const { data, error } = everywhere.isError ? one : everywhere;
  const chosen = new Set(runs.map(({ uid }) => uid));
  const columns: Column<RunSummary>[] = [
    {
      id: "chosen",
      head: "Compare",
      value: ({ uid }) => Number(chosen.has(uid)),
      show: ({ namespace: of, uid, name }) => (
        <Checkbox
          aria-label={`Compare ${name}`}
          checked={chosen.has(uid)}
          onChange={(event) => {
            onChange(event.currentTarget.checked ? [...runs, { namespace: of, uid }] : runs.filter((run) => run.uid !== uid));
          }}
        />
      ),
    },
    {
      id: "name",
      head: "Experiment",
      value: ({ name }) => name,
      show: (run) => <RunLink size="sm" run={run}>{run.name}</RunLink>,
    },
    { id: "namespace", head: "Namespace", value: (run) => run.namespace },
    { id: "t0", head: "T0, ago", value: ({ t0 }) => t0, show: ({ t0 }) => <Age time={t0} /> },
    { id: "keptUp", head: "Kept up", value: ({ keptUp }) => yesOrNo(keptUp) },
    { id: "campaign", head: "Campaign", value: ({ campaign }) => campaign?.name ?? "" },
    { id: "size", head: "Size", numeric: true, value: ({ bytes }) => bytes, show: ({ bytes }) => runSize(bytes) },
    { id: "uid", head: "UID", value: ({ uid }) => uid },
  ];
  return (
    <Stack gap="xs" mt="sm">
      <Group align="end">
        <TextInput
          label="Find runs"
          description="by words of name, namespace, campaign or UID"
          value={search}
          onChange={(event) => {
            setSearch(event.currentTarget.value);
          }}
        />
        {everywhere.isError && <NamespaceInput namespace={namespace} known={[...new Set(runs.map((run) => run.namespace))]} onChange={setTyped} />}
      </Group>
      <Trouble error={error} title="The archive's runs could not be listed" />
      {data ? <VirtualTable label="Archived runs" columns={columns} rows={pickable(data, search)} keyOf={({ uid }) => uid} height={320} empty={search.trim() === "" ? "There is no run with results." : "No run with results has these words."} /> : !error && <Loader aria-label="The runs are being listed" />}
    </Stack>
  );
}
