import { isScalar } from "yaml";

// Kubernetes reads YAML 1.1 (go-yaml), this page reads YAML 1.2.
const truths = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"];
const lies = ["n", "N", "no", "No", "NO", "off", "Off", "OFF"];

/** kubernetesValue of a node that this page reads otherwise; undefined for others. */
export function kubernetesValue(node: unknown): boolean | number | undefined {
  if (!isScalar(node) || node.type !== "PLAIN" || node.tag !== undefined || node.source === undefined) return undefined;
  if (truths.includes(node.source)) return true;
  if (lies.includes(node.source)) return false;
  const number = numberOf(node.source);
  return number === node.value ? undefined : number;
}

const digitsOfNumber = /^(?:0[xX][\da-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?)$/;

/** numberOf a word as go-yaml reads it: _ parts digits, and 0 before others is octal. */
function numberOf(word: string): number | undefined {
  const [, sign = "", rest = ""] = /^([-+]?)(.*)$/.exec(word) ?? [];
  const digits = rest.replaceAll("_", "");
  if (!/^[-+\d]/.test(word) || !digitsOfNumber.test(digits)) return undefined;
  return (sign === "-" ? -1 : 1) * Number(digits.replace(/^0(?=[0-7]+$)/, "0o"));
}
