import { Group, SimpleGrid, Stack } from "@mantine/core";
import { endsOf, fieldsOf as valuesOf, type Field, type Kind } from "../../../components/livechange/draft";
import { useObjects } from "../../../kubernetes/hooks";
import { waveforms } from "../../../kubernetes/kinds";
import { namesOf } from "../text/complete";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { isSilent, kindOfChange, pathOf, silenced, turnedInto, type Setting } from "./changes";
import { useForm } from "./context";
import { ChoiceField, Errors, TextField, YesNoField } from "./fields";
import { modelOfNetwork } from "./models";
import { nodeNames, nodesOf } from "./nodes";
import { RemoveButton } from "./RemoveButton";

const words: Readonly<Record<Kind, string>> = { change: "other values", silence: "silence", jammer: "jammer" };

/** ChangeFields are those of a change of a network in the timeline. */
export function ChangeFields({ list, place }: { list: Path; place: number }) {
  const { editing, edit } = useForm();
  const known = useObjects(waveforms).objects ?? [];
  const path: Path = [...list, place];
  const change = fieldsOf(at(editing.spec, path));
  const network = listOf(editing.spec.networks).map(fieldsOf).find((each) => each.name === change.network);
  const model = (network && modelOfNetwork(network, known)) ?? (change.radio ? "rfpipe" : "link");
  const kind = kindOfChange(change);
  const kinds: Kind[] = ["link", "emane"].includes(model) ? ["change", "silence"] : ["change", "silence", "jammer"];
  const nodes = nodeNames(nodesOf(editing.spec).filter((node) => listOf(node.networks).includes(change.network)));
  const ends = endsOf({ kind }, model);
  const shown = valuesOf({ kind, ends: false }, model).filter((field) => !field.isLong && (isMain(field, model, kind) || at(change, pathOf(field.name, kind, model)) !== undefined));
  const make = (settings: readonly Setting[]) => {
    edit(settings.map(([field, value]) => editing.set([...path, field], value)));
  };
  return (
    <Group align="start" wrap="nowrap" gap="xs" role="group" aria-label={`change of ${wordOf(change.network) || "a network"}`}>
      <Stack gap={0} flex={1} miw={0}>
        <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
          <ChoiceField label="Network" path={[...path, "network"]} options={namesOf(editing.spec.networks)} optional={false} />
          <ChoiceField
            label="Change"
            path={path}
            options={kinds.map((each) => words[each])}
            optional={false}
            shown={words[kind]}
            onChoose={(word) => {
              const chosen = kinds.find((each) => words[each] === word);
              if (chosen && chosen !== kind) make(turnedInto(chosen, change, model));
            }}
          />
          {kind === "silence" && (
            <>
              {ends.includes("from") && (
                <ChoiceField label="Radios of" path={[...path, "from"]} options={nodes} placeholder="all" onChoose={(from) => { make(silenced(change, from, isSilent(change))); }} />
              )}
              <ChoiceField
                label="Silent"
                path={[...path, "silent"]}
                options={["yes", "no"]}
                optional={false}
                shown={isSilent(change) ? "yes" : "no"}
                onChoose={(word) => { make(silenced(change, ends.includes("from") ? wordOf(change.from) : "", word === "yes")); }}
              />
            </>
          )}
          {kind === "change" && ends.map((end) => <TextField key={end} label={labelOf(end, model)} path={[...path, end]} suggestions={nodes} placeholder="all" />)}
          {kind === "jammer" && <YesNoField label="Silent" path={[...path, "jammer", "silent"]} placeholder="no" />}
          {shown.map((field) => (
            <Value key={field.name} field={field} path={[...path, ...pathOf(field.name, kind, model)]} />
          ))}
        </SimpleGrid>
        <Errors of={[["link"], ["radio"], ["schedule"], ["jammer"], ["jammer", "position"]].map((object) => [...path, ...object])} />
      </Stack>
      <RemoveButton list={list} place={place} what={`change of ${wordOf(change.network)}`} />
    </Group>
  );
}

/** isMain reports whether a field is always shown. Of a link's many only the first are. */
function isMain({ name }: Field, model: string, kind: Kind): boolean {
  return kind === "jammer" || model !== "link" || ["rate", "delay", "jitter", "loss"].includes(name);
}

function labelOf(end: "from" | "to", model: string): string {
  return end === "to" ? "Frames to" : model === "link" ? "Frames from" : "Radios of";
}

function Value({ field: { name, label, example, choices }, path }: { field: Field; path: Path }) {
  const { editing } = useForm();
  const properties = { label, path, emptied: editing.emptied(path) };
  if (name === "reorder") return <YesNoField {...properties} placeholder="as it is" />;
  if (choices) return <ChoiceField {...properties} placeholder="as it is" />;
  return <TextField {...properties} number={name.startsWith("limit")} placeholder={example} />;
}
