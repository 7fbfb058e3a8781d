import { Code, Container, Stack, Text, Title } from "@mantine/core";
import { Trouble } from "../components/Trouble";
import { Refusal } from "../kubernetes/client";

/** Login is shown to whoever has no session. */
export function Login({ error }: { error: Error }) {
  const unknown = error instanceof Refusal && error.status === 401;
  return (
    <Container size="sm" pt="xl">
      <Stack>
        <Title order={1}>vignette</Title>
        {unknown ? (
          <Text>
            Open the address that <Code>vignette ui</Code> printed. It has the token of this start, which is valid until the command ends.
          </Text>
        ) : (
          <Trouble error={error} title="The console has no connection" />
        )}
      </Stack>
    </Container>
  );
}
