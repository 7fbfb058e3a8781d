import { fileKinds, kindOfFile, type FileKind } from "../../archive/runs";
import type { ManifestFile } from "../../archive/types";

/** chosenKinds are those that an address names; all without any. */
export function chosenKinds(named: readonly string[]): FileKind[] {
  const chosen = fileKinds.filter((kind) => named.includes(kind));
  return chosen.length === 0 ? [...fileKinds] : chosen;
}

export function filesShown(files: readonly ManifestFile[], kinds: readonly FileKind[], search: string): ManifestFile[] {
  const wanted = search.trim().toLowerCase();
  return files.filter(({ path }) => kinds.includes(kindOfFile(path)) && path.toLowerCase().includes(wanted));
}

export function sizeOf(files: readonly ManifestFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}
