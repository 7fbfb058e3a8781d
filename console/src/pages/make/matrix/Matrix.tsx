import { Autocomplete, Button, CloseButton, Fieldset, Group, Paper, SimpleGrid, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { many } from "../../../components/figures";
import { span } from "../../../components/time";
import { useForm } from "../form/context";
import { EditButton } from "../form/EditButton";
import { TextField } from "../form/fields";
import { useForecast, useText, type Forecast } from "../hooks";
import { pathsOf } from "../text/complete";
import { wordsAt } from "../text/findings";
import type { TextModel } from "../text/model";
import { asCampaign, axesOf, MatrixEditing, textOf, valueOf, type Axis } from "./campaign";

/** Matrix edits what a campaign varies. */
export function Matrix({ model, namespace, valid }: { model: TextModel; namespace: string; valid: boolean }) {
  const { editing } = useForm();
  const { text } = useText(model);
  const campaign = editing.written;
  const { forecast, fresh, error } = useForecast(text, namespace, valid && campaign.kind === "Campaign");
  if (campaign.kind !== "Campaign") return <MakeCampaign model={model} />;
  const matrix = new MatrixEditing(campaign);
  return (
    <Stack>
      <SimpleGrid cols={{ base: 2, xs: 3 }}>
        {(["repeats", "parallelism"] as const).map((field) => (
          <TextField key={field} label={field === "repeats" ? "Repeats of each point" : "Runs at once"} path={["spec", field]} whole number />
        ))}
      </SimpleGrid>
      {axesOf(campaign).map((axis, place) => (
        <AxisFields key={place} axis={axis} place={place} />
      ))}
      <Group>
        <EditButton edits={() => matrix.addAxis()}>Add an axis</EditButton>
      </Group>
      <Text role="status">
        {valid && fresh && forecast?.runs !== undefined ? sizeOf(forecast) : valid && !error ? "The number of runs is being computed." : "The number of runs follows when the text has no errors."}
      </Text>
    </Stack>
  );
}

/** sizeOf a campaign, in words. */
function sizeOf({ points, runs, campaignSeconds, parallelism }: Forecast): string {
  const time = campaignSeconds ? `, about ${span(campaignSeconds)} with ${parallelism ?? 1} at once, without starts and analyses` : "";
  return `${many(points ?? 1, "point")}, ${many(runs ?? 0, "run")}${time}`;
}

function MakeCampaign({ model }: { model: TextModel }) {
  const { text } = useText(model);
  const campaign = useMemo(() => asCampaign(text), [text]);
  return (
    <Stack align="start">
      <Text>A campaign runs the experiment once for each combination of some values. The experiment becomes its template.</Text>
      {campaign === undefined ? (
        <Text>The text has to be without errors of YAML, and the experiment&apos;s spec has to begin on a line of its own. Then the page can make a campaign of it.</Text>
      ) : (
        <Button
          variant="default"
          onClick={() => {
            model.replace(campaign, "campaign");
          }}
        >
          Make it a campaign
        </Button>
      )}
    </Stack>
  );
}

function AxisFields({ axis, place }: { axis: Axis; place: number }) {
  const { editing, findings, edit } = useForm();
  const matrix = new MatrixEditing(editing.written);
  const title = axis.name || `Axis ${place + 1}`;
  return (
    <Fieldset legend={title}>
      <Stack gap="xs">
        <Group justify="space-between" align="end" wrap="nowrap">
          <TextInput
            label="Name"
            value={axis.name}
            onChange={(event) => {
              edit(matrix.name(place, event.currentTarget.value));
            }}
          />
          <CloseButton
            aria-label={`Remove axis ${title}`}
            onClick={() => {
              edit(matrix.removeAxis(place));
            }}
          />
        </Group>
        {axis.levels.length === 0 ? (
          <>
            <PathField
              path={axis.path}
              onChange={(path) => {
                edit(matrix.path(place, path));
              }}
            />
            <TagsInput
              label="Values"
              value={axis.values.map(textOf)}
              onChange={(words) => {
                edit(matrix.values(place, words));
              }}
            />
            <Group>
              <EditButton size="compact-xs" edits={() => matrix.asLevels(place)}>Give each level several fields</EditButton>
            </Group>
          </>
        ) : (
          <Levels axis={axis} place={place} />
        )}
        {(wordsAt(findings, editing.written.object, ["spec", "matrix", "axes", place], true) ?? "") !== "" && (
          <Text c="var(--mantine-color-error)" size="sm">
            {wordsAt(findings, editing.written.object, ["spec", "matrix", "axes", place], true)}
          </Text>
        )}
      </Stack>
    </Fieldset>
  );
}

/** PathField offers the paths of the template's fields. */
function PathField({ path, onChange }: { path: string; onChange: (path: string) => void }) {
  const { editing, schemas } = useForm();
  const paths = schemas ? pathsOf(editing.written, schemas).map((choice) => choice.label) : [];
  return <Autocomplete label="Field" placeholder="networks[wan].link.rate" value={path} data={[...new Set(paths)]} limit={50} onChange={onChange} />;
}

function Levels({ axis, place }: { axis: Axis; place: number }) {
  const { editing, edit } = useForm();
  const matrix = new MatrixEditing(editing.written);
  return (
    <Stack gap="xs">
      {axis.levels.map((level, l) => (
        <Paper key={l} withBorder p="xs">
          <Group justify="space-between" align="end" wrap="nowrap">
            <TextInput
              label="Level"
              value={level.name}
              onChange={(event) => {
                edit(matrix.levelName(place, l, event.currentTarget.value));
              }}
            />
            <CloseButton
              aria-label={`Remove level ${level.name}`}
              onClick={() => {
                edit(matrix.removeLevel(place, l));
              }}
            />
          </Group>
          {level.set.map((setting, s) => (
            <Group key={s} align="end" wrap="nowrap" gap="xs">
              <PathField
                path={setting.path}
                onChange={(path) => {
                  edit(matrix.setting(place, l, s, "path", path));
                }}
              />
              <ValueField
                value={setting.value}
                onChange={(word) => {
                  edit(matrix.setting(place, l, s, "value", word));
                }}
              />
              <CloseButton
                aria-label={`Remove ${setting.path || "the field"}`}
                onClick={() => {
                  edit(matrix.removeSetting(place, l, s));
                }}
              />
            </Group>
          ))}
          <EditButton mt="xs" size="compact-xs" edits={() => matrix.addSetting(place, l)}>Set a field</EditButton>
        </Paper>
      ))}
      <Group>
        <EditButton size="compact-xs" edits={() => matrix.addLevel(place)}>Add a level</EditButton>
      </Group>
    </Stack>
  );
}

/** ValueField changes the document when it is left: half a word may be a value of another type. */
function ValueField({ value, onChange }: { value: unknown; onChange: (word: string) => void }) {
  const [draft, setDraft] = useState<string>();
  return (
    <TextInput
      label="Value"
      value={draft ?? textOf(value)}
      onChange={(event) => {
        setDraft(event.currentTarget.value);
      }}
      onBlur={() => {
        if (draft !== undefined && textOf(valueOf(draft)) !== textOf(value)) onChange(draft);
        setDraft(undefined);
      }}
    />
  );
}
