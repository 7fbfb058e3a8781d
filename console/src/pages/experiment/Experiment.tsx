import { Title } from "@mantine/core";

export function Experiment() {
  return <Title order={1}>Experiment</Title>;
}
