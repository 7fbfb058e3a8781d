import { Alert, Button, Stack, Text } from "@mantine/core";
import { Refusal } from "../kubernetes/client";

interface TroubleProps {
  error: unknown;
  title?: string;
  /** onRetry asks once more, where the page may not do so soon by itself. */
  onRetry?: () => void;
}

/** Trouble shows why something could not be read or written. Only a Refusal has words for people. */
export function Trouble({ error, title = "This could not be read", onRetry }: TroubleProps) {
  if (error === null || error === undefined) return null;
  return (
    <Alert color="orange" title={title} role="alert">
      {error instanceof Refusal ? <Refused words={error.message} onRetry={onRetry} /> : <OwnFailure />}
    </Alert>
  );
}

function Refused({ words, onRetry }: { words: string; onRetry: (() => void) | undefined }) {
  if (!onRetry) return words;
  return (
    <Stack gap="xs" align="start">
      <Text inherit>{words}</Text>
      <Button size="compact-sm" variant="default" onClick={onRetry}>
        Try again
      </Button>
    </Stack>
  );
}

function OwnFailure() {
  return (
    <Stack gap="xs" align="start">
      <Text inherit>The page itself failed. It may be older than its server: load it again.</Text>
      <Button
        size="compact-sm"
        variant="default"
        onClick={() => {
          window.location.reload();
        }}
      >
        Reload
      </Button>
    </Stack>
  );
}
