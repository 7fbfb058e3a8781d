import { Title } from "@mantine/core";

export function Campaign() {
  return <Title order={1}>Campaign</Title>;
}
