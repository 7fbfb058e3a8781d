import { Alert, Box, Grid, Stack, Tabs, Text, Title } from "@mantine/core";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import type { Draft } from "../../app/drafts";
import { useFirstNamespace } from "../../app/scope";
import { useChoices } from "../../components/address";
import { useJudgement } from "../../components/judgement";
import { Trouble } from "../../components/Trouble";
import { useObjects } from "../../kubernetes/hooks";
import { scenarios, waveforms } from "../../kubernetes/kinds";
import { useKeeping, type Kept } from "./draft";
import { Editing } from "./form/actions";
import { FormContext } from "./form/context";
import { Form } from "./form/Form";
import { useSchemas, useText } from "./hooks";
import { Matrix } from "./matrix/Matrix";
import { Preview } from "./preview/Preview";
import { RunBar } from "./run/RunBar";
import { useFreeName } from "./run/useFreeName";
import type { Source } from "./start/source";
import { Editor } from "./text/Editor";
import editorClasses from "./text/Editor.module.css";
import { editorOf, marking, type Knowledge } from "./text/extensions";
import { FindingList } from "./text/FindingList";
import type { Finding } from "./text/findings";
import type { TextModel } from "./text/model";
import { noYAML, type Content } from "./text/read";
import { at, wordOf } from "./text/values";

const Topology = lazy(() => import("./topology/Topology").then((m) => ({ default: m.Topology })));

/** Workshop has a form and a drawing beside the YAML that they all change. */
export function Workshop({ source, draft }: { source: Source; draft: Draft<Kept> }) {
  const first = useFirstNamespace();
  const [choice, choose] = useChoices();
  const [restored] = useState(() => draft.read());
  const [chosen, setChosen] = useState(restored?.namespace);
  const [{ model, know }] = useState(() => editorOf(restored?.text ?? source.text));
  const { text, content, readable } = useText(model);
  const main = readable.main;
  const written = wordOf(at(main?.object, ["metadata", "namespace"]));
  const namespace = written || (chosen ?? source.mark?.namespace ?? first);
  const setNamespace = (name: string) => {
    setChosen(name);
    if (main && written) model.edit([{ document: main.document, path: ["metadata", "namespace"], value: name }]);
  };
  const { judgement, error, fresh } = useJudgement(text, namespace);
  const schemas = useSchemas();
  useKnowledge(know, namespace, schemas);
  const named = useFreeName(model, source.text, namespace);
  const loss = useKeeping(draft, text, chosen, [source.text, named]);
  const findings = useMemo(() => judgement?.findings ?? [], [judgement]);
  useEffect(() => {
    model.dispatch(model.current.update(marking(model.current, findings)));
  }, [model, findings]);
  const form = useMemo(
    () =>
      main && {
        editing: new Editing(main),
        findings,
        schemas,
        edit: (edits: Parameters<TextModel["edit"]>[0]) => {
          model.edit(edits);
        },
      },
    [main, findings, schemas, model],
  );
  const valid = judgement?.valid === true && !content.problem;
  return (
    <Stack gap="sm">
      <Title order={1}>{main?.kind === "Campaign" ? "New campaign" : "New experiment"}</Title>
      <Text c="dimmed">{source.title}</Text>
      {source.notes.map((note) => (
        <Text key={note} size="sm">
          Note: {note}
        </Text>
      ))}
      {restored && restored.text === text && <Text size="sm">This is the draft that you left here.</Text>}
      {loss && <Text size="sm">{loss}</Text>}
      <RunBar model={model} source={source} beginning={named ?? source.text} namespace={namespace} onNamespace={setNamespace} onRun={() => { draft.discard(); }} ready={valid && fresh} />
      <Trouble error={error} title="The text could not be checked" />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 6 }}>
          {content.problem && (
            <Alert color="orange" p="xs" mb="xs" role="status">
              Line {lineOf(content.problem, findings)} of the YAML: {content.problem.message} The form shows what stood there before.
            </Alert>
          )}
          {form ? (
            <FormContext value={form}>
              <Tabs value={choice("part") ?? "form"} onChange={(part) => { choose({ part: part === "form" ? undefined : (part ?? undefined) }); }} keepMounted={false}>
                <Tabs.List>
                  <Tabs.Tab value="form">Form</Tabs.Tab>
                  <Tabs.Tab value="topology">Topology</Tabs.Tab>
                  <Tabs.Tab value="matrix">Matrix</Tabs.Tab>
                  <Tabs.Tab value="preview">Preview</Tabs.Tab>
                </Tabs.List>
                <Box pt="sm">
                  <Tabs.Panel value="form">
                    <Form />
                  </Tabs.Panel>
                  <Tabs.Panel value="topology">
                    <Suspense fallback={<Text>Reading</Text>}>
                      <Topology />
                    </Suspense>
                  </Tabs.Panel>
                  <Tabs.Panel value="matrix">
                    <Matrix model={model} namespace={namespace} valid={valid} />
                  </Tabs.Panel>
                  <Tabs.Panel value="preview">
                    <Preview text={text} source={source} namespace={namespace} valid={valid} />
                  </Tabs.Panel>
                </Box>
              </Tabs>
            </FormContext>
          ) : (
            <Text>The text has no Experiment and no Campaign. Write one beside, with its apiVersion and kind.</Text>
          )}
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 6 }}>
          <Stack gap="xs" className={editorClasses.beside}>
            <Editor model={model} />
            <FindingList findings={findings} fresh={fresh} onReveal={(line) => { model.reveal(line); }} />
          </Stack>
        </Grid.Col>
      </Grid>
    </Stack>
  );
}

/** lineOf a problem: of what is no YAML the checker knows better where it begins, and its list has that line. */
function lineOf(problem: NonNullable<Content["problem"]>, findings: readonly Finding[]): number {
  const judged = problem.message === noYAML ? findings.find(({ path, warning }) => !path && !warning)?.line : undefined;
  return judged ?? problem.line;
}

/** useKnowledge keeps what the editor offers up to date. */
function useKnowledge(know: (knowledge: Knowledge) => void, namespace: string, schemas: Knowledge["schemas"]) {
  const known = useObjects(waveforms).objects;
  const present = useObjects(scenarios, { namespace }).objects;
  useEffect(() => {
    know({ schemas, names: { waveforms: (known ?? []).map((w) => w.metadata.name), scenarios: (present ?? []).map((s) => s.metadata.name) } });
  }, [know, schemas, known, present]);
}
