import type { components } from "./crds.gen";

type Schemas = components["schemas"];

export type Experiment = Schemas["Experiment"];
export type Campaign = Schemas["Campaign"];
export type Scenario = Schemas["Scenario"];
export type LiveChange = Schemas["LiveChange"];
export type Capture = Schemas["Capture"];
export type RadioNetwork = Schemas["RadioNetwork"];
export type Waveform = Schemas["Waveform"];
export type NodeTemplate = Schemas["NodeTemplate"];
export type ObjectMeta = Schemas["ObjectMeta"];
