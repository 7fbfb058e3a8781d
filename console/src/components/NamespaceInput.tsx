import { Autocomplete } from "@mantine/core";
import { useState } from "react";

/** NamespaceInput is for who may not list namespaces. A name counts when Enter ends it, or when the field is left. */
export function NamespaceInput({ namespace, known, onChange }: { namespace: string; known: readonly string[]; onChange: (namespace: string) => void }) {
  const [draft, setDraft] = useState<string>();
  const take = (name: string | undefined) => {
    setDraft(undefined);
    const wanted = name?.trim() ?? "";
    if (wanted !== "" && wanted !== namespace) onChange(wanted);
  };
  return (
    <Autocomplete
      label="Namespace"
      value={draft ?? namespace}
      data={[...known]}
      onChange={setDraft}
      onOptionSubmit={take}
      onBlur={() => {
        take(draft);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter") take(draft);
      }}
    />
  );
}
