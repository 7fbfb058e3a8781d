import { Alert } from "@mantine/core";

/** Trouble shows why something could not be read or written. */
export function Trouble({ error, title = "This could not be read" }: { error: unknown; title?: string }) {
  if (error === null || error === undefined) return null;
  const words = error instanceof Error ? error.message : "The reason is not known.";
  return (
    <Alert color="orange" title={title} role="alert">
      {words}
    </Alert>
  );
}
