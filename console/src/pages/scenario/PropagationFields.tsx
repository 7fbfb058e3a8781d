import { NativeSelect, SimpleGrid, TextInput } from "@mantine/core";
import { isExact } from "../../components/exact";
import type { Plan, Propagation } from "./plan";

const models = ["FreeSpace", "TwoRay", "LogDistance", "Diffraction"] as const;

interface Part {
  name: "frequency" | "antennaHeight" | "exponent" | "shadowing" | "shadowingDistance" | "syntheticTerrain";
  label: string;
  example: string;
  models: readonly string[];
}

const parts: readonly Part[] = [
  { name: "frequency", label: "Frequency", example: "300MHz", models },
  { name: "antennaHeight", label: "Antenna height", example: "3m", models: ["TwoRay", "Diffraction"] },
  { name: "exponent", label: "Exponent", example: "3", models: ["LogDistance"] },
  { name: "shadowing", label: "Shadowing", example: "4dB", models: ["LogDistance"] },
  { name: "shadowingDistance", label: "Shadowing distance", example: "50m", models: ["LogDistance"] },
  { name: "syntheticTerrain", label: "Seed of generated hills", example: "1", models: ["Diffraction"] },
];

/** withPart is the propagation with another value of a part; an empty one leaves the default. */
export function withPart(propagation: Propagation, name: Part["name"], text: string): Propagation {
  const value = name === "syntheticTerrain" && /^-?\d+$/.test(text) && isExact(Number(text)) ? Number(text) : text;
  const parts = Object.entries({ ...propagation, [name]: value });
  return Object.fromEntries(parts.filter(([part, given]) => part === "frequency" || given !== "")) as Propagation;
}

/** withModel keeps of the parts those that the model has. */
export function withModel(propagation: Propagation | undefined, model: string): Propagation | undefined {
  const chosen = models.find((one) => one === model);
  if (!chosen) return undefined;
  const kept = Object.entries(propagation ?? {}).filter(([name]) => parts.some((part) => part.name === name && part.models.includes(chosen)) || (name === "terrain" && chosen === "Diffraction"));
  return { frequency: "300MHz", ...Object.fromEntries(kept), model: chosen };
}

/** PropagationFields choose how the pathloss follows from the positions. */
export function PropagationFields({ plan, errors, onChange }: { plan: Plan; errors: Record<string, string>; onChange: (plan: Plan) => void }) {
  const { propagation } = plan;
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="sm">
      <NativeSelect
        label="Propagation"
        value={propagation?.model ?? ""}
        error={errors.model}
        data={[{ value: "", label: "none: positions alone" }, ...models]}
        onChange={(event) => {
          onChange({ ...plan, propagation: withModel(propagation, event.currentTarget.value) });
        }}
      />
      {propagation &&
        parts
          .filter((part) => part.models.includes(propagation.model))
          .map(({ name, label, example }) => (
            <TextInput
              key={name}
              label={label}
              placeholder={example}
              error={errors[name]}
              value={String(propagation[name] ?? "")}
              onChange={(event) => {
                onChange({ ...plan, propagation: withPart(propagation, name, event.currentTarget.value) });
              }}
            />
          ))}
    </SimpleGrid>
  );
}
