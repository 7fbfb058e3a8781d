package main

// Selectors of one run. radiod's series do not have its uid.
const (
	ofRun   = `namespace="$namespace", experiment="$experiment", uid="$uid"`
	ofName  = `namespace="$namespace", experiment="$experiment"`
	ofNodes = ofName + `, node=~"$node"`
)

func experiment() dashboard {
	return dashboard{
		file: "experiment-live.json", uid: "vignette-experiment", title: "Experiment live",
		about: "One run while it goes on, from the message logs as they reach the archive (about a second later) and radiod's counters.",
		variables: []variable{
			{name: "namespace", label: "Team", query: `label_values(vignette_experiment_info, namespace)`},
			{name: "experiment", label: "Experiment", query: `label_values(vignette_experiment_info{namespace="$namespace"}, experiment)`},
			{name: "uid", label: "Run", query: `label_values(vignette_experiment_info{` + ofName + `}, uid)`},
			{name: "node", label: "Node", query: `label_values(vignette_radio_frames_sent_total{` + ofName + `}, node)`, all: true},
		},
		annotations: []object{{
			"name": "Events", "enable": true, "hide": false, "iconColor": "light-blue", "datasource": datasource, "type": "dashboard",
			"expr": `vignette_experiment_event_time_seconds{` + ofRun + `} * 1000`, "titleFormat": "{{event}}", "useValueForTime": true, "step": "10s",
			"target": object{"limit": 200, "matchAny": false, "tags": []any{}, "type": "dashboard"},
		}},
		rows: []row{{4, headline()}, {12, []panel{nodeMap(), delivered(), delays()}}, {9, radio()}, {9, volume()}, {9, perNode()}},
	}
}

func headline() []panel {
	share := number("Delivered", "percentunit", "Deliveries between nodes that have arrived, of those offered so far; messages on their way, or never sent, count as not arrived.", 6,
		`experiment:vignette_delivered:ratio{`+ofRun+`}`, "of the whole run")
	share.steps = goodShares
	phase := number("Phase", "none", "Where the run is on its way.", 6, `vignette_experiment_info{`+ofRun+`}`, "{{phase}}")
	phase.options = object{"reduceOptions": object{"calcs": []any{"lastNotNull"}, "fields": "", "values": false}, "textMode": "name", "colorMode": "none",
		"graphMode": "none", "justifyMode": "auto", "orientation": "auto"}
	never := number("Messages never sent", "short", "Triggered by apps, and not sent so far.", 6,
		`vignette_experiment_messages_triggered_total{`+ofRun+`} - vignette_experiment_messages_sent_total{`+ofRun+`}`, "messages")
	return []panel{
		share,
		number("Median delay", "s", "From sent to received, of the deliveries between nodes so far.", 6, `experiment:vignette_delay_seconds:quantile{`+ofRun+`, quantile="0.5"}`, "median"),
		never,
		phase,
	}
}

// nodeMap shows nodes at their positions, coloured by received messages.
func nodeMap() panel {
	table := func(expr string) query { return query{expr: `max by (node) (` + expr + `)`, table: true} }
	renamed := object{"Value #A": "latitude", "Value #B": "longitude", "Value #C": "delivered"}
	return panel{
		kind: "geomap", title: "Nodes", unit: "percentunit", width: 8, steps: goodShares,
		about: "Where nodes are, and the share of what was offered to them that arrived. Networks that know no positions have none here.",
		queries: []query{
			table(`vignette_experiment_node_latitude_degrees{` + ofRun + `}`), table(`vignette_experiment_node_longitude_degrees{` + ofRun + `}`),
			table(`vignette_experiment_receiver_deliveries_received{` + ofRun + `} / (vignette_experiment_receiver_deliveries_offered{` + ofRun + `} > 0)`),
		},
		transformations: []any{
			object{"id": "joinByField", "options": object{"byField": "node", "mode": "outer"}},
			object{"id": "organize", "options": object{"renameByName": renamed}},
		},
		options: object{
			"view": object{"id": "fit", "lat": 0, "lon": 0, "zoom": 12, "allLayers": true}, "basemap": object{"type": "default", "name": "Map"},
			"controls": object{"showZoom": true, "mouseWheelZoom": true, "showAttribution": true, "showScale": true, "showMeasure": false, "showDebug": false},
			"tooltip":  object{"mode": "details"},
			"layers": []any{object{
				"type": "markers", "name": "Nodes", "tooltip": true,
				"location": object{"mode": "coords", "latitude": "latitude", "longitude": "longitude"},
				"config": object{"showLegend": true, "style": object{
					"color": object{"field": "delivered", "fixed": "blue"}, "opacity": 0.8, "size": object{"fixed": 8, "min": 2, "max": 15},
					"symbol": object{"fixed": "img/icons/marker/circle.svg", "mode": "fixed"}, "text": object{"field": "node", "fixed": "", "mode": "field"},
					"textConfig": object{"fontSize": 12, "offsetX": 0, "offsetY": -12, "textAlign": "center", "textBaseline": "middle"},
				}},
			}},
		},
	}
}

func delivered() panel {
	return lines("Delivered share", "percentunit", "Of the whole run so far, and of about the last minute.", 8,
		query{expr: `experiment:vignette_delivered:ratio{` + ofRun + `}`, legend: "whole run"},
		query{expr: `experiment:vignette_delivered:ratio1m{` + ofRun + `}`, legend: "last minute"})
}

func delays() panel {
	return lines("Delay", "s", "Quantiles of the delays from sent to received: of the whole run so far, and of what arrived in the last minute (within 10 %). "+
		"At least: without the times in which the radio was late.", 8,
		query{expr: `experiment:vignette_delay_seconds:quantile{` + ofRun + `, quantile=~"0.5|0.95"}`, legend: "quantile {{quantile}}, whole run"},
		query{expr: `experiment:vignette_delay_least_seconds:quantile{` + ofRun + `, quantile=~"0.5|0.95"}`, legend: "quantile {{quantile}}, at least"},
		query{expr: `experiment:vignette_delay_seconds:quantile1m{` + ofRun + `}`, legend: "quantile {{quantile}}, last minute"})
}

func radio() []panel {
	return []panel{
		lines("SINR by link", "dB", "Of the last transmission above the sensitivity that a node heard from another; networks with a physical layer (rfpipe, tdma).", 12,
			query{expr: `vignette_radio_link_sinr_decibels{` + ofNodes + `}`, legend: "{{network}}: {{from}} → {{node}}"}),
		lines("Queue depth", "short", "Frames of a node that wait at its radio or are under way.", 12,
			query{expr: `vignette_radio_queue_frames{` + ofNodes + `}`, legend: "{{network}}: {{node}}"}),
	}
}

func volume() []panel {
	const (
		content = `sum(rate(vignette_experiment_sender_content_bytes_total{` + ofRun + `}[1m]))`
		routing = `sum(network:vignette_radio_routing_bytes:rate1m{` + ofName + `})`
		all     = `sum(network:vignette_radio_bytes:rate1m{` + ofName + `})`
		// A reason has no series before its first event.
		none = `sum(vignette_radio_frames_sent_total{` + ofName + `}) * 0`
	)
	layers := lines("Volume by layer", "Bps", "Bytes of frames that nodes sent, Ethernet header included. Content is that of messages, as published; the rest are headers, "+
		"acknowledgements, and what is forwarded. The results have every layer.", 12,
		query{expr: content, legend: "content"}, query{expr: routing, legend: "routing"},
		query{expr: `clamp_min(` + all + ` - (` + routing + ` or vector(0)) - (` + content + ` or vector(0)), 0)`, legend: "headers, acknowledgements, forwarding"})
	layers.stacked = true
	return []panel{layers,
		lines("Transmissions not received, and drops", "short", "A second, by reason.", 12,
			query{expr: `sum by (reason) (rate(vignette_radio_link_missed_total{` + ofName + `}[1m])) or ` + none, legend: "not received: {{reason}}"},
			query{expr: `sum by (reason) (rate(vignette_radio_drops_total{` + ofName + `}[1m])) or ` + none, legend: "dropped: {{reason}}"}),
	}
}

func perNode() []panel {
	by := func(side, labels string) string {
		return `sum by (` + labels + `) (vignette_experiment_` + side + `_deliveries_received{` + ofRun + `}) / (sum by (` + labels + `) (vignette_experiment_` + side +
			`_deliveries_offered{` + ofRun + `}) > 0)`
	}
	to := bars("Delivered to", "percentunit", "By the node that should receive.", 8, query{expr: by("receiver", "node"), legend: "{{node}}"})
	from := bars("Delivered from", "percentunit", "By the node and the app that sent.", 8, query{expr: by("sender", "node, app"), legend: "{{node}}/{{app}}"})
	to.steps, from.steps = goodShares, goodShares
	return []panel{to, from,
		lines("Emulation lateness", "s", "How much later than the model said frames were handed over: 99 % were within this. Results say what that can have done to the figures.", 8,
			query{expr: `histogram_quantile(0.99, sum by (network, le) (rate(vignette_radio_release_lateness_seconds_bucket{` + ofName + `}[1m])))`, legend: "{{network}}"})}
}

func campaign() dashboard {
	const of = `namespace="$namespace", campaign="$campaign"`
	return dashboard{
		file: "campaign.json", uid: "vignette-campaign", title: "Campaign", about: "The runs of a campaign's round, and those of them that go on.",
		variables: []variable{
			{name: "namespace", label: "Team", query: `label_values(vignette_campaign_runs, namespace)`},
			{name: "campaign", label: "Campaign", query: `label_values(vignette_campaign_runs{namespace="$namespace"}, campaign)`},
		},
		rows: []row{
			{7, []panel{
				bars("Runs", "short", "By phase.", 8, query{expr: `vignette_campaign_runs{` + of + `}`, legend: "{{phase}}"}),
				lines("Delivered so far, runs that go on", "percentunit", "Of the whole run.", 16,
					query{expr: `experiment:vignette_delivered:ratio{namespace="$namespace", experiment=~"$campaign-.*"}`, legend: "{{experiment}}"}),
			}},
			{10, []panel{
				bars("Delivered by point", "percentunit", "Mean of the runs that are over.", 12,
					query{expr: `avg by (point) (vignette_campaign_run_delivered_ratio{` + of + `})`, legend: "{{point}}"}),
				bars("Median delay by point", "s", "Mean of the medians of the runs that are over.", 12,
					query{expr: `avg by (point) (vignette_campaign_run_median_delay_seconds{` + of + `})`, legend: "{{point}}"}),
			}},
			{10, []panel{{
				kind: "table", title: "Runs that are over", width: 24, about: "The comparison in the archive has intervals, too.",
				queries: []query{{expr: `max by (run, point) (vignette_campaign_run_delivered_ratio{` + of + `})`, table: true},
					{expr: `max by (run, point) (vignette_campaign_run_median_delay_seconds{` + of + `})`, table: true}},
				transformations: []any{object{"id": "merge", "options": object{}}, object{"id": "organize", "options": object{
					"excludeByName": object{"Time": true}, "renameByName": object{"Value #A": "delivered (0 to 1)", "Value #B": "median delay (s)"}}}},
			}}},
		},
	}
}

func platform() dashboard {
	return dashboard{
		file: "platform.json", uid: "vignette-platform", title: "Platform", about: "What teams use, what waits, and whether the emulation keeps up.",
		rows: []row{{5, overview()}, {9, teams()}, {9, emulation()}, {8, archive()}},
	}
}

func overview() []panel {
	return []panel{
		bars("Experiments", "short", "By phase.", 10, query{expr: `sum by (phase) (vignette_experiments)`, legend: "{{phase}}"}),
		number("Nodes of experiments", "short", "Pods that have not ended.", 5, `sum(vignette_team_nodes) or vector(0)`, "nodes"),
		number("Room for pods", "short", "Pods that the hosts that take any can have, those there are included: ready, neither cordoned nor tainted.", 5, `vignette_cluster_allocatable{resource="pods"}`, "pods"),
		number("Alerts", "short", "That fire.", 4, `count(ALERTS{alertstate="firing", alertname=~"Vignette.*"}) or vector(0)`, "firing"),
	}
}

func teams() []panel {
	const each = `sum by (namespace) (vignette_experiments) * 0`
	quota := bars("Quota used", "percentunit", "Of each team's ResourceQuotas, by resource.", 8,
		query{expr: `max by (namespace, resource) (vignette_team_quota{type="used"} / ignoring (type) (vignette_team_quota{type="hard"} > 0))`, legend: "{{namespace}}: {{resource}}"})
	quota.steps = []any{step(nil, "green"), step(0.8, "orange"), step(0.95, "red")}
	return []panel{quota,
		lines("Queue", "short", "Experiments that wait, by team.", 8,
			query{expr: `sum by (namespace) (vignette_experiments{phase="Queued"}) or ` + each, legend: "{{namespace}}"}),
		lines("Longest wait", "s", "Of the experiments that wait now, by team.", 8,
			query{expr: `max by (namespace) (time() - vignette_experiment_waiting_since_seconds) or ` + each, legend: "{{namespace}}"})}
}

func emulation() []panel {
	return []panel{
		lines("Radiod lateness by host", "s", "99 % of frames were handed over within this of the model's time. Results say what that can have done to the figures.", 8,
			query{expr: `histogram_quantile(0.99, sum by (host, le) (rate(vignette_radio_release_lateness_seconds_bucket[1m])))`, legend: "{{host}}"}),
		lines("Late and lost frames, and missed slots", "short", "Frames a second that were more than 2 ms late or that the emulation lost itself, and time slots missed, by experiment.", 8,
			query{expr: `sum by (namespace, experiment) (rate(vignette_radio_release_lateness_seconds_count[1m]))` +
				` - sum by (namespace, experiment) (rate(vignette_radio_release_lateness_seconds_bucket{le="0.002"}[1m]))`, legend: "{{namespace}}/{{experiment}}: late frames"},
			query{expr: `(sum by (namespace, experiment) (rate(vignette_radio_drops_total{reason=~"tapRing|routerSocket|missedSlot"}[1m]))) or vector(0)`, legend: "{{namespace}}/{{experiment}}: lost frames"},
			query{expr: `(sum by (namespace, experiment) (rate(vignette_radio_slots_missed_total[1m]))) or vector(0)`, legend: "{{namespace}}/{{experiment}}: slots"}),
		lines("Frames", "short", "A second that nodes sent, by experiment.", 8,
			query{expr: `sum by (namespace, experiment) (rate(vignette_radio_frames_sent_total[1m]))`, legend: "{{namespace}}/{{experiment}}"}),
	}
}

func archive() []panel {
	free := number("Archive free", "percentunit", "Of its volume.", 6, `vignette_server_volume_free_bytes / vignette_server_volume_bytes`, "free")
	free.steps = []any{step(nil, "red"), step(0.15, "orange"), step(0.3, "green")}
	return []panel{free,
		lines("Archived", "Bps", "Bytes a second, by kind.", 9, query{expr: `sum by (kind) (rate(vignette_server_archived_bytes_total[1m]))`, legend: "{{kind}}"}),
		lines("CPU of the platform", "short", "Cores.", 9, query{expr: `sum by (part, host) (rate(process_cpu_seconds_total{part=~"vignette-.*"}[1m]))`, legend: "{{part}} on {{host}}"},
			query{expr: `sum by (host) (rate(vignette_plane_process_cpu_seconds_total[1m]))`, legend: "radios' data plane on {{host}}"})}
}
