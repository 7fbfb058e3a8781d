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

/** commandsFor a text in a file: those that do what the page's button does. */
export function commandsFor(kind: string, name: string, namespace: string): { label: string; command: string }[] {
  const file = `${name || "experiment"}.yaml`;
  return [
    { label: "kubectl", command: `kubectl apply -n ${namespace} -f ${file}` },
    { label: "vignette", command: `vignette run -n ${namespace} ${file}${kind === "Experiment" ? " --watch" : ""}` },
  ];
}
