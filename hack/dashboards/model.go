package main

import "fmt"

// object is a JSON object.
type object = map[string]any

// dashboard is what distinguishes a dashboard; model returns Grafana's JSON (schemaVersion 39: Grafana 10.4 and later).
type dashboard struct {
	file, uid, title, about string
	variables               []variable
	annotations             []object
	// Rows of panels, from the top.
	rows []row
}

// row is a row of panels of one height, in Grafana's grid of 24 columns.
type row struct {
	height int
	panels []panel
}

type variable struct {
	name, label, query string
	// all: any number of values, initially all of them.
	all bool
}

type panel struct {
	kind, title, about, unit string
	width                    int
	queries                  []query
	options                  object
	// steps are the colours, from green or red at the start.
	steps           []any
	transformations []any
	stacked         bool
}

type query struct {
	expr, legend string
	// table: only the newest values, as a table.
	table bool
}

var datasource = object{"type": "prometheus", "uid": "${datasource}"}

func (d dashboard) model() object {
	variables := []any{object{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus", "hide": 0, "refresh": 1,
		"includeAll": false, "multi": false, "options": []any{}, "regex": "", "skipUrlSync": false}}
	for _, v := range d.variables {
		variables = append(variables, v.model())
	}
	var panels []any
	y := 0
	for _, r := range d.rows {
		x := 0
		for _, p := range r.panels {
			panels = append(panels, p.model(len(panels)+1, object{"x": x, "y": y, "w": p.width, "h": r.height}))
			x += p.width
		}
		y += r.height
	}
	annotations := []any{}
	for _, a := range d.annotations {
		annotations = append(annotations, a)
	}
	return object{
		"uid": d.uid, "title": d.title, "description": d.about, "tags": []any{"vignette"}, "schemaVersion": 39, "version": 1, "editable": true,
		"graphTooltip": 1, "refresh": "5s", "time": object{"from": "now-15m", "to": "now"}, "timezone": "browser", "links": []any{},
		"templating": object{"list": variables}, "annotations": object{"list": annotations}, "panels": panels,
	}
}

func (v variable) model() object {
	m := object{"name": v.name, "label": v.label, "type": "query", "datasource": datasource, "hide": 0, "refresh": 2, "sort": 1, "regex": "",
		"query":      object{"qryType": 1, "query": v.query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
		"includeAll": v.all, "multi": v.all, "options": []any{}, "skipUrlSync": false}
	if v.all {
		m["allValue"] = ".*"
		m["current"] = object{"selected": true, "text": "All", "value": "$__all"}
	}
	return m
}

func (p panel) model(id int, position object) object {
	targets := []any{}
	for i, q := range p.queries {
		t := object{"refId": string(rune('A' + i)), "expr": q.expr, "legendFormat": q.legend, "datasource": datasource, "editorMode": "code",
			"instant": q.table, "range": !q.table, "format": "time_series"}
		if q.table {
			t["format"] = "table"
		}
		targets = append(targets, t)
	}
	m := object{"id": id, "type": p.kind, "title": p.title, "description": p.about, "gridPos": position, "datasource": datasource, "targets": targets,
		"options": p.settings(), "fieldConfig": object{"defaults": p.fields(), "overrides": []any{}}, "transparent": false}
	if p.transformations != nil {
		m["transformations"] = p.transformations
	}
	return m
}

func (p panel) fields() object {
	fields := object{"unit": p.unit, "custom": object{}}
	if p.unit == "percentunit" {
		fields["min"], fields["max"] = 0, 1
	}
	if p.steps != nil {
		fields["color"] = object{"mode": "thresholds"}
		fields["thresholds"] = object{"mode": "absolute", "steps": p.steps}
	}
	if p.kind == "timeseries" {
		custom := object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": false}
		if p.stacked {
			custom["stacking"], custom["fillOpacity"] = object{"mode": "normal", "group": "A"}, 40
		}
		fields["custom"] = custom
	}
	return fields
}

// The settings of the kinds of panels.
func (p panel) settings() object {
	if p.options != nil {
		return p.options
	}
	reduce := object{"calcs": []any{"lastNotNull"}, "fields": "", "values": false}
	switch p.kind {
	case "stat":
		return object{"reduceOptions": reduce, "colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto"}
	case "bargauge":
		return object{"reduceOptions": reduce, "displayMode": "gradient", "orientation": "horizontal", "showUnfilled": true, "valueMode": "color",
			"minVizHeight": 10, "minVizWidth": 0, "namePlacement": "auto", "sizing": "auto"}
	case "timeseries":
		return object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []any{"lastNotNull"}},
			"tooltip": object{"mode": "multi", "sort": "desc"}}
	case "table":
		return object{"showHeader": true, "cellHeight": "sm"}
	}
	panic(fmt.Sprintf("panel %q: no settings for the kind %s", p.title, p.kind))
}

func lines(title, unit, about string, width int, queries ...query) panel {
	return panel{kind: "timeseries", title: title, unit: unit, about: about, width: width, queries: queries}
}

func number(title, unit, about string, width int, expr, legend string) panel {
	return panel{kind: "stat", title: title, unit: unit, about: about, width: width, queries: []query{{expr: expr, legend: legend}}}
}

func bars(title, unit, about string, width int, queries ...query) panel {
	return panel{kind: "bargauge", title: title, unit: unit, about: about, width: width, queries: queries}
}

// step returns a step of colours: from a value on; nil is from the start.
func step(from any, colour string) object { return object{"value": from, "color": colour} }

var goodShares = []any{step(nil, "red"), step(0.8, "orange"), step(0.95, "green")}
