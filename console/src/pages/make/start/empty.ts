/** empty is an experiment to begin with: the least that measures something. */
export const empty = `apiVersion: vignette.dev/v1alpha1
kind: Experiment
metadata:
  name: my-experiment
spec:
  duration: 75s
  seed: 1
  networks:
  - {name: wan, link: {rate: 1Mbit, delay: 20ms, loss: 0%}, subnet: 198.18.0.0/24}
  apps:
  - {name: broker, mosquitto: {}}
  - name: units
    publisher: {protocol: mqtt, to: broker, payload: geojson, period: 2s, lead: 3s}
    subscriber: {protocol: mqtt, to: broker, topics: ["#"]}
  nodes:
  - {name: hq, networks: [wan], apps: [broker, units]}
  - {name: veh, networks: [wan], apps: [units]}
  timeline:
  - {at: 7s, start: [units]}      # 3 s to connect, then the first messages
  - {at: 70s, stop: [units]}
  collect: {captures: [wan], captureSnapLengthBytes: 96}
`;
