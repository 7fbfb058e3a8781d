import { Checkbox, Group, Select, Text, TextInput } from "@mantine/core";
import { useMemo } from "react";
import type { Filter, Filtered } from "./entries";

interface FiltersProps {
  entries: readonly Filtered[];
  shown: number;
  filter: Filter;
  onChange: (filter: Filter) => void;
  /** placeholder says of what the text is a part. */
  placeholder?: string;
}

/** Filters choose among entries; the address has them. */
export function Filters({ entries, shown, filter, onChange, placeholder = "Name, phase, message" }: FiltersProps) {
  const namespaces = useMemo(() => choicesOf(entries.map((entry) => entry.namespace), filter.namespace), [entries, filter.namespace]);
  const phases = useMemo(() => choicesOf(entries.map((entry) => entry.phase), filter.phase), [entries, filter.phase]);
  const hasRuns = useMemo(() => entries.some((entry) => entry.campaign), [entries]);
  return (
    <Group gap="sm" align="end">
      <TextInput
        label="Text"
        placeholder={placeholder}
        value={filter.words}
        onChange={(event) => {
          onChange({ ...filter, words: event.currentTarget.value });
        }}
        w={{ base: "100%", xs: 220 }}
      />
      <Choice label="Namespace" data={namespaces} value={filter.namespace} onChange={(namespace) => { onChange({ ...filter, namespace }); }} />
      <Choice label="Phase" data={phases} value={filter.phase} onChange={(phase) => { onChange({ ...filter, phase }); }} />
      {hasRuns && (
        <Checkbox
          label="Runs of campaigns"
          checked={filter.runs}
          onChange={(event) => {
            onChange({ ...filter, runs: event.currentTarget.checked });
          }}
          pb={8}
        />
      )}
      <Text size="sm" c="dimmed" role="status" pb={8}>
        {shown === entries.length ? `${shown} shown` : `${shown} of ${entries.length} shown`}
      </Text>
    </Group>
  );
}

/** choicesOf names without repetition, also of the one that is chosen. */
function choicesOf(names: string[], chosen: string): string[] {
  return [...new Set(chosen ? [...names, chosen] : names)].filter(Boolean).sort();
}

interface ChoiceProps {
  label: string;
  data: string[];
  value: string;
  onChange: (value: string) => void;
}

function Choice({ label, data, value, onChange }: ChoiceProps) {
  return (
    <Select
      label={label}
      placeholder="All"
      data={data}
      value={value || null}
      onChange={(chosen) => {
        onChange(chosen ?? "");
      }}
      clearable
      searchable
      clearButtonProps={{ "aria-label": `All of ${label.toLowerCase()}` }}
      w={{ base: "47%", xs: 180 }}
    />
  );
}
