import { NativeSelect } from "@mantine/core";
import { NamespaceInput } from "../../../components/NamespaceInput";
import { useObjects } from "../../../kubernetes/hooks";
import { namespaces } from "../../../kubernetes/kinds";

/** NamespaceField chooses a namespace. Who may not list them writes its name. */
export function NamespaceField({ namespace, onChange }: { namespace: string; onChange: (namespace: string) => void }) {
  const { objects, error } = useObjects(namespaces);
  if (!objects && error) return <NamespaceInput namespace={namespace} known={[namespace]} onChange={onChange} />;
  // While the list loads, the only choice is the present one.
  const names = (objects ?? []).map((n) => n.metadata.name).filter((name) => !name.startsWith("kube-"));
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
