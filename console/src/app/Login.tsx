import { Anchor, Code, Container, Stack, Text, Title } from "@mantine/core";
import { Trouble } from "../components/Trouble";
import { Refusal } from "../kubernetes/client";
import { loginAddress } from "./session";

/** Login is shown to whoever has no session. */
export function Login({ error }: { error: Error }) {
  return (
    <Container component="main" size="sm" pt="xl">
      <Stack>
        <Title order={1}>vignette</Title>
        {error instanceof Refusal && error.status === 401 ? <Way login={error.login} /> : <Trouble error={error} title="The console has no connection" />}
      </Stack>
    </Container>
  );
}

/** Way to a session: the login service of a team's console, else the address of `vignette ui`. */
function Way({ login }: { login: string }) {
  if (login !== "") {
    return (
      <Text>
        You are not logged in.{" "}
        <Anchor href={loginAddress(login, window.location.pathname + window.location.search)} underline="always">
          Log in
        </Anchor>
      </Text>
    );
  }
  return (
    <Text>
      Open the address that <Code>vignette ui</Code> printed. It has the token of this start, which is valid until the command ends.
    </Text>
  );
}
