import { Button, Checkbox, Group, NativeSelect, Paper, SimpleGrid, Stack, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { SyntheticEvent } from "react";
import { create, Refusal } from "../../kubernetes/client";
import { liveChanges } from "../../kubernetes/kinds";
import { Trouble } from "../Trouble";
import { endsOf, errorsOf, fieldsOf, forNetwork, liveChangeOf, pathsOf, type Draft, type Field } from "./draft";

export interface LiveChangeFormProps {
  experiment: { namespace: string; name: string };
  draft: Draft;
  /** model of the draft's network: link, rfpipe or tdma. */
  model: string;
  networks: readonly string[];
  /** names of groups and nodes. */
  names: readonly string[];
  onChange: (draft: Draft) => void;
  onClose: () => void;
  /** onMiddle fills in the place in the middle of the map, for those without a pointer; absent for a map without places. */
  onMiddle?: () => void;
}

const titles = { change: "Change a network", silence: "Silence radios", jammer: "Place a jammer" };

/** LiveChangeForm makes a LiveChange of a running experiment, which the API server checks first. */
export function LiveChangeForm(props: LiveChangeFormProps) {
  const { experiment, draft, model, onChange, onClose, onMiddle } = props;
  const fields = fieldsOf(draft, model);
  const making = useMutation({
    mutationFn: async () => {
      const object = liveChangeOf(experiment, draft, model);
      await create(liveChanges, experiment.namespace, object, { dryRun: true });
      return create(liveChanges, experiment.namespace, object);
    },
    onSuccess: onClose,
  });
  const refusal = making.error instanceof Refusal ? making.error : undefined;
  const { byField, rest } = errorsOf(refusal?.causes ?? [], pathsOf(draft, model));
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    making.mutate();
  };
  return (
    <Paper withBorder p="md" component="section" aria-label={titles[draft.kind]}>
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          <Title order={2} size="h3">{titles[draft.kind]}</Title>
          <Ends {...props} errors={byField} />
          {draft.kind === "jammer" && !draft.ends && (
            <Group gap="sm">
              <Text size="sm">{onMiddle ? "Click on the map where the jammer stands, or type its position." : "Type the jammer's position: the map has no places."}</Text>
              {onMiddle && (
                <Button size="compact-sm" variant="default" onClick={onMiddle}>
                  Take the middle of the map
                </Button>
              )}
            </Group>
          )}
          {draft.kind === "change" && <Text size="sm">What is left empty stays as it is.{model !== "link" && " A radio changes towards all others."}</Text>}
          <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="sm">
            {fields.map((field) => (
              <Input key={field.name} field={field} value={draft.values[field.name] ?? ""} error={byField[field.name]} onChange={(value) => {
                onChange({ ...draft, values: { ...draft.values, [field.name]: value } });
              }} />
            ))}
          </SimpleGrid>
          {rest.map((words) => (
            <Trouble key={words} error={new Refusal(0, words)} title="The change was refused" />
          ))}
          {making.error && !refusal?.causes.length && <Trouble error={making.error} title="The change was refused" />}
          <Group>
            <Button type="submit" loading={making.isPending}>
              Apply now
            </Button>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
          </Group>
        </Stack>
      </form>
    </Paper>
  );
}

/** Ends are the network and the nodes of a change. */
function Ends({ draft, model, networks, names, onChange, errors }: LiveChangeFormProps & { errors: Record<string, string> }) {
  const all = { value: "", label: "all" };
  const nodes = [all, ...names.map((name) => ({ value: name, label: name }))];
  const isLink = model === "link";
  const ends = endsOf(draft, model);
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="sm">
      <NativeSelect label="Network" value={draft.network} data={[...networks]} error={errors.network} onChange={(event) => {
        onChange(forNetwork(draft, event.currentTarget.value));
      }} />
      {ends.includes("from") && (
        <NativeSelect label={isLink ? "Frames from" : "Radios of"} value={draft.from} data={nodes} error={errors.from} onChange={(event) => {
          onChange({ ...draft, from: event.currentTarget.value });
        }} />
      )}
      {ends.includes("to") && (
        <NativeSelect label="Frames to" value={draft.to} data={nodes} error={errors.to} onChange={(event) => {
          onChange({ ...draft, to: event.currentTarget.value });
        }} />
      )}
      {draft.kind !== "change" && (
        <Checkbox mt="xl" label={draft.kind === "jammer" ? "The jammer ends" : "The silence ends"} checked={draft.ends} onChange={(event) => {
          onChange({ ...draft, ends: event.currentTarget.checked });
        }} />
      )}
    </SimpleGrid>
  );
}

function Input({ field, value, error, onChange }: { field: Field; value: string; error: string | undefined; onChange: (value: string) => void }) {
  const common = { label: field.label, error, value };
  if (field.choices) {
    return (
      <NativeSelect {...common} data={[{ value: "", label: "as it is" }, ...field.choices]} onChange={(event) => {
        onChange(event.currentTarget.value);
      }} />
    );
  }
  const Text = field.isLong ? Textarea : TextInput;
  return (
    <Text {...common} placeholder={field.example} onChange={(event) => {
      onChange(event.currentTarget.value);
    }} />
  );
}
