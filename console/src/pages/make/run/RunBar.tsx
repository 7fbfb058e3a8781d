import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { download } from "../../../components/download";
import { Question } from "../../../components/Question";
import { Trouble } from "../../../components/Trouble";
import { useRight } from "../../../kubernetes/hooks";
import { useText } from "../hooks";
import type { Source } from "../start/source";
import type { TextModel } from "../text/model";
import { read } from "../text/read";
import { NamespaceField } from "./NamespaceField";
import { fileNameOf, fileOf } from "./file";
import { submit } from "./submit";

interface RunBarProps {
  model: TextModel;
  source: Source;
  /** beginning is the text to which a draft that is discarded goes back. */
  beginning: string;
  namespace: string;
  onNamespace: (namespace: string) => void;
  onRun: () => void;
  /** ready: the present text was checked and has no errors. */
  ready: boolean;
}

/** RunBar undoes, downloads and runs. */
export function RunBar({ model, source, beginning, namespace, onNamespace, onRun, ready }: RunBarProps) {
  const { text, content, undoable, redoable } = useText(model);
  const kind = content.main?.kind ?? "Experiment";
  const { allowed, error } = useRight({ verb: "create", group: "vignette.dev", resource: kind === "Campaign" ? "campaigns" : "experiments", namespace });
  const navigate = useNavigate();
  const running = useMutation({
    mutationFn: () => {
      const { objects, main } = read(fileOf(text, source));
      return submit(objects, main, namespace);
    },
    onSuccess: async (made) => {
      onRun();
      const parameters = { params: { namespace: made.namespace, name: made.name } };
      if (made.kind === "Campaign") await navigate({ to: "/ns/$namespace/campaigns/$name", ...parameters });
      else await navigate({ to: "/ns/$namespace/experiments/$name", ...parameters });
    },
  });
  return (
    <Stack gap="xs">
      <Group align="end" gap="xs">
        <NamespaceField namespace={namespace} onChange={onNamespace} />
        <Button variant="default" disabled={!undoable} onClick={model.undo}>
          Undo
        </Button>
        <Button variant="default" disabled={!redoable} onClick={model.redo}>
          Redo
        </Button>
        {text !== beginning && text !== source.text && (
          <Question
            button="Discard draft"
            title="Discard the draft?"
            what="The text becomes as it was at first. Undo brings the draft back while this page is open."
            onYes={(done) => {
              model.replace(beginning, "discard");
              done();
            }}
          />
        )}
        <Button
          variant="default"
          onClick={() => {
            download(fileNameOf(content.main?.name), fileOf(text, source), "application/yaml");
          }}
        >
          Download YAML
        </Button>
        {source.mark && kind === "Experiment" && <SeedButton model={model} />}
        {allowed === true && (
          <Button
            disabled={!ready}
            loading={running.isPending}
            onClick={() => {
              running.mutate();
            }}
          >
            {kind === "Campaign" ? "Start the campaign" : "Run"}
          </Button>
        )}
        {allowed === false && <Text size="sm">You may not create {kind === "Campaign" ? "campaigns" : "experiments"} in namespace {namespace}: ask its team, or choose another.</Text>}
      </Group>
      <Trouble error={error} title="It is not known whether you may create this" />
      <Trouble error={running.error} title="It was not started" />
    </Stack>
  );
}

/** SeedButton draws a new seed for a clone. */
function SeedButton({ model }: { model: TextModel }) {
  const draw = () => {
    const main = model.getSnapshot().readable.main;
    const [seed = 1] = crypto.getRandomValues(new Uint16Array(1));
    if (main) model.edit([{ document: main.document, path: ["spec", "seed"], value: seed }]);
  };
  return (
    <Button variant="default" onClick={draw}>
      New seed
    </Button>
  );
}
