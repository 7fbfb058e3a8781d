import { Group, SimpleGrid, Stack } from "@mantine/core";
import { at, fieldsOf, listOf, wordOf, type Path } from "../text/values";
import { useForm } from "./context";
import { EditButton } from "./EditButton";
import { ChoiceField, LinesField, TextField, WordsField } from "./fields";
import { RemoveButton } from "./RemoveButton";

/** OwnFields are those of an app of the user's own: its image and command, and what both need. */
export function OwnFields({ app }: { app: number }) {
  const path: Path = ["apps", app];
  return (
    <Stack gap="xs">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs">
        <Stack gap="xs">
          <TextField label="Image" path={[...path, "image"]} placeholder="none: a program of a virtual machine" />
          <TextField label="Run as user" path={[...path, "runAsUser"]} number placeholder="the image's own" />
        </Stack>
        <LinesField label="Command" path={[...path, "command"]} within />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs">
        <ChoiceField label="Message log" path={[...path, "messageLog"]} placeholder="File (default)" />
        <TextField label="Protocol" path={[...path, "protocol"]} placeholder="topics alone decide" />
        <WordsField label="Subscribes" path={[...path, "subscribes"]} optional within />
      </SimpleGrid>
      <Each list={[...path, "files"]} what="file" name="path" label="Path" kinds={{ content: "Content", configMap: "ConfigMap" }} beginning={{ path: "/etc/app/config.yaml", content: "" }} />
      <Each list={[...path, "env"]} what="variable" name="name" label="Variable" kinds={{ value: "Value", configMap: "ConfigMap", secret: "Secret" }} beginning={{ name: "NAME", value: "" }} />
    </Stack>
  );
}

interface EachProps {
  list: Path;
  /** what an element is, in a word. */
  what: string;
  /** name is the field that an element is known by, and its label. */
  name: string;
  label: string;
  /** kinds of contents, by their fields; the first one stands in the text itself. */
  kinds: Readonly<Record<string, string>>;
  beginning: Readonly<Record<string, string>>;
}

/** Each file or variable has its content here, or under a key of another object. */
function Each({ list, what, name, label, kinds, beginning }: EachProps) {
  const { editing, edit } = useForm();
  const elements = listOf(at(editing.spec, list)).map(fieldsOf);
  const [here = ""] = Object.keys(kinds);
  return (
    <>
      {elements.map((element, place) => {
        const path: Path = [...list, place];
        const kind = Object.keys(kinds).find((each) => element[each] !== undefined) ?? here;
        return (
          <Group key={place} align="start" wrap="nowrap" gap="xs" role="group" aria-label={`${what} ${wordOf(element[name])}`}>
            <SimpleGrid cols={{ base: 2, md: 4, lg: 3, xl: 4 }} spacing="xs" flex={1} miw={0}>
              <TextField label={label} path={[...path, name]} />
              <ChoiceField
                label="Given by"
                path={path}
                options={Object.values(kinds)}
                optional={false}
                shown={kinds[kind] ?? ""}
                onChoose={(word) => {
                  const chosen = Object.keys(kinds).find((each) => kinds[each] === word) ?? here;
                  edit(editing.turn(path, kind, chosen, chosen === here ? "" : { name: "", key: "" }));
                }}
              />
              {kind === here ? (
                <TextField label={kinds[here] ?? ""} path={[...path, here]} long={what === "file"} />
              ) : (
                <>
                  <TextField label={`Name of the ${kinds[kind] ?? ""}`} path={[...path, kind, "name"]} />
                  <TextField label="Key" path={[...path, kind, "key"]} />
                </>
              )}
            </SimpleGrid>
            <RemoveButton list={list} place={place} what={`${what} ${wordOf(element[name])}`} />
          </Group>
        );
      })}
      <Group>
        <EditButton size="compact-xs" edits={() => editing.add(list, beginning)}>{`Add a ${what}`}</EditButton>
      </Group>
    </>
  );
}
