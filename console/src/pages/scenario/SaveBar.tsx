import { Button, Code, CopyButton, Group, ScrollArea, Stack, Text, TextInput } from "@mantine/core";
import { useJudgement } from "../../components/judgement";
import { errorsOf } from "../../components/livechange/draft";
import { Trouble } from "../../components/Trouble";
import { Refusal } from "../../kubernetes/client";
import { useAccess } from "../../kubernetes/hooks";
import type { Plan } from "./plan";
import { PropagationFields } from "./PropagationFields";
import type { Loaded } from "./loaded";
import { useSaving } from "./useScenario";

interface SaveBarProps {
  plan: Plan;
  yaml: string;
  /** loaded Scenario that is edited; saving by its name replaces it. */
  loaded: Loaded | undefined;
  onChange: (plan: Plan) => void;
  /** onSaved gets the plan that was saved. It may have been edited meanwhile. */
  onSaved: (saved: Plan) => void;
}

const fields = new Map([
  ["metadata.name", "name"],
  ["metadata.namespace", "namespace"],
  ["spec.description", "description"],
  ...["model", "frequency", "antennaHeight", "exponent", "shadowing", "shadowingDistance", "syntheticTerrain"].map((name) => [`spec.propagation.${name}`, name] as const),
]);

/** SaveBar names a scenario, saves it with the user's rights, and shows its YAML. */
export function SaveBar({ plan, yaml, loaded, onChange, onSaved }: SaveBarProps) {
  const replaced = loaded?.plan && loaded.plan.name === plan.name && loaded.plan.namespace === plan.namespace ? loaded : undefined;
  const verb = replaced ? "patch" : "create";
  const mayScenario = useAccess({ verb, group: "vignette.dev", resource: "scenarios", namespace: plan.namespace });
  const mayFile = useAccess({ verb, group: "", resource: "configmaps", namespace: plan.namespace });
  const saving = useSaving(onSaved);
  const { judgement, fresh, error } = useJudgement(yaml, plan.namespace);
  const found = (judgement?.findings ?? []).filter(({ warning }) => !warning);
  // While the present text is judged, the words about the one before stay.
  const causes = found.length > 0 ? found.map(({ path = "", message }) => ({ field: path, message: path === "" ? message : `${path}: ${message}` })) : saving.error instanceof Refusal ? saving.error.causes : [];
  const { byField, rest } = errorsOf(causes, fields);
  return (
    <Stack gap="sm">
      <PropagationFields plan={plan} errors={byField} onChange={onChange} />
      <Group align="end" gap="sm">
        <TextInput label="Name" value={plan.name} error={byField.name} onChange={(event) => { onChange({ ...plan, name: event.currentTarget.value }); }} />
        <TextInput label="Namespace" value={plan.namespace} error={byField.namespace} onChange={(event) => { onChange({ ...plan, namespace: event.currentTarget.value }); }} />
        <TextInput flex={1} miw={200} label="Description" value={plan.description} error={byField.description} onChange={(event) => { onChange({ ...plan, description: event.currentTarget.value }); }} />
        {mayScenario && mayFile && (
          <Button
            loading={saving.isPending}
            disabled={!fresh || judgement?.valid !== true}
            onClick={() => { saving.mutate({ plan, replaced }); }}
          >
            {replaced ? `Save over ${plan.name}` : "Save as a Scenario"}
          </Button>
        )}
      </Group>
      {mayScenario === false && <Text size="sm">You may not save Scenarios in namespace {plan.namespace}. The YAML can be copied.</Text>}
      {mayFile === false && <Text size="sm">You may not save ConfigMaps, which hold the waypoints, in namespace {plan.namespace}. The YAML can be copied.</Text>}
      {saving.isSuccess && <Text size="sm" role="status">Saved.</Text>}
      <Trouble error={error} title="The scenario could not be checked" />
      {plan.platforms.length === 0 && <Text size="sm">Place a platform on the map first.</Text>}
      {(plan.platforms.length === 0 ? [] : rest).map((words) => (
        <Trouble key={words} error={new Refusal(0, words)} title="This cannot be saved" />
      ))}
      {saving.error && (!(saving.error instanceof Refusal) || saving.error.causes.length === 0) && <Trouble error={saving.error} title="It was not saved" />}
      <YamlText yaml={yaml} />
    </Stack>
  );
}

/** YamlText shows the objects as kubectl apply takes them. */
export function YamlText({ yaml }: { yaml: string }) {
  return (
    <section aria-label="YAML">
      <Group justify="space-between" mb={4}>
        <Text fw={600}>YAML</Text>
        <CopyButton value={yaml}>
          {({ copied, copy }) => (
            <Button size="compact-sm" variant="default" onClick={copy}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
      </Group>
      <ScrollArea.Autosize mah={360} viewportProps={{ tabIndex: 0 }}>
        <Code block>{yaml}</Code>
      </ScrollArea.Autosize>
    </section>
  );
}
