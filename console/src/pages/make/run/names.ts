import { fileNameOf } from "./file";

const longestName = 40;

/** freeName suggests a name that neither the cluster nor the archive has, from another: run, run-2, run-3. */
export function freeName(name: string, taken: ReadonlySet<string>): string {
  if (name !== "" && !taken.has(name)) return name;
  const base = name.replace(/-\d+$/, "") || "experiment";
  for (let n = 2; ; n++) {
    const suffix = `-${n}`;
    const found = base.slice(0, longestName - suffix.length).replace(/-+$/, "") + suffix;
    if (!taken.has(found)) return found;
  }
}

/** commandsFor the file of a text: those that do what the page's button does. A client-side apply would add an annotation. */
export function commandsFor(kind: string, name: string, namespace: string): { label: string; command: string }[] {
  const file = shellWord(fileNameOf(name));
  const into = shellWord(namespace);
  return [
    { label: "kubectl", command: `kubectl apply --server-side -n ${into} -f ${file}` },
    { label: "vignette", command: `vignette run -n ${into} ${file}${kind === "Experiment" ? " --watch" : ""}` },
  ];
}

/** shellWord is a text as one word of a shell, with quotes where it needs them. */
function shellWord(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
