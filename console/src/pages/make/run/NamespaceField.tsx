import { Autocomplete, NativeSelect } from "@mantine/core";
import { useEffect, useState } from "react";
import { useObjects } from "../../../kubernetes/hooks";
import { namespaces } from "../../../kubernetes/kinds";

/** NamespaceField chooses a namespace. Who may not list them writes its name. */
export function NamespaceField({ namespace, onChange }: { namespace: string; onChange: (namespace: string) => void }) {
  const { objects } = useObjects(namespaces);
  if (!objects) return <Written key={namespace} namespace={namespace} onChange={onChange} />;
  const names = objects.map((n) => n.metadata.name).filter((name) => !name.startsWith("kube-"));
  return (
    <NativeSelect
      label="Namespace"
      value={namespace}
      data={names.includes(namespace) ? names : [namespace, ...names]}
      onChange={(event) => {
        onChange(event.currentTarget.value);
      }}
    />
  );
}

const pauseMilliseconds = 700;

function Written({ namespace, onChange }: { namespace: string; onChange: (namespace: string) => void }) {
  const [draft, setDraft] = useState(namespace);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (draft !== "" && draft !== namespace) onChange(draft);
    }, pauseMilliseconds);
    return () => {
      clearTimeout(timer);
    };
  }, [draft, namespace, onChange]);
  return <Autocomplete label="Namespace" value={draft} onChange={setDraft} data={[namespace]} />;
}
