import { Title } from "@mantine/core";

export function Home() {
  return <Title order={1}>Experiments</Title>;
}
