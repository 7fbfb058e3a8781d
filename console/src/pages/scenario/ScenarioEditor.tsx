import { Title } from "@mantine/core";

export function ScenarioEditor() {
  return <Title order={1}>Scenario editor</Title>;
}
