import { Alert, TagsInput } from "@mantine/core";
import { useState } from "react";
import { isNamespace, type Scope } from "../../app/scope";

/** NamespacesField takes the namespaces of a user who may not list those of the cluster. */
export function NamespacesField({ scope, title = "You may not list the experiments of all namespaces" }: { scope: Scope; title?: string }) {
  const namespaces = [...(scope.namespaces ?? [])];
  const [refused, setRefused] = useState<string>();
  return (
    <Alert color="blue" variant="outline" title={title}>
      <TagsInput
        label="Namespaces to show"
        description="This browser remembers them."
        placeholder="Name, then Enter"
        value={namespaces}
        error={refused !== undefined && `No namespace can have the name ${refused}: want lower-case letters, digits and hyphens, at most 63.`}
        onChange={(next) => {
          setRefused(next.find((name) => !isNamespace(name)));
          for (const name of next) if (isNamespace(name) && !namespaces.includes(name)) scope.remember(name);
          for (const name of namespaces) if (!next.includes(name)) scope.forget(name);
        }}
      />
    </Alert>
  );
}
