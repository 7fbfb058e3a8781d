import { askJSON, base } from "../kubernetes/client";

/** archivePath is where the API server has the results server of a namespace, as in internal/runapi. */
export function archivePath(namespace: string, path: string): string {
  return `${base}/apis/results.vignette.dev/v1alpha1/namespaces/${encodeURIComponent(namespace)}/archives/default/proxy/v1${path}`;
}

/** fromArchive reads JSON that the results server has about runs of a namespace. */
export function fromArchive<T>(namespace: string, path: string, signal?: AbortSignal): Promise<T> {
  return askJSON<T>(archivePath(namespace, path), signal ? { signal } : {});
}
