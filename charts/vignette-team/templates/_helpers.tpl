{{- define "vignette-team.labels" -}}
app.kubernetes.io/part-of: vignette
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
