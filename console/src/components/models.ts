/** models that a network may have in place, by their fields. */
export const models = ["link", "rfpipe", "tdma"] as const;

/** modelOf a network: the field in which its model stands; undefined for a named waveform. */
export function modelOf(network: Partial<Record<(typeof models)[number], unknown>>): (typeof models)[number] | undefined {
  return models.find((model) => network[model] !== undefined);
}
