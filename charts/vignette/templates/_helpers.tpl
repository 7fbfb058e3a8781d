{{- define "vignette.labels" -}}
app.kubernetes.io/part-of: vignette
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* image of a program: call with (dict "root" . "name" "operator") */}}
{{- define "vignette.image" -}}
{{- $i := .root.Values.images -}}
{{ with $i.registry }}{{ . }}/{{ end }}{{ .name }}:{{ $i.tag | default .root.Chart.AppVersion }}
{{- end }}

{{- define "vignette.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "vignette.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
# A volume whose root has the group was given to it before: to visit each of its files again may take minutes.
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* the projected token that our programs show the server */}}
{{- define "vignette.tokenVolume" -}}
name: token
projected:
  sources:
  - serviceAccountToken: {audience: vignette.dev/server, path: token, expirationSeconds: 3600}
{{- end }}

{{/* annotations of a pod, unless podAnnotations has others: call with (dict "root" . "own" (dict ...)) */}}
{{- define "vignette.podAnnotations" -}}
{{- toYaml (merge (dict) (.root.Values.podAnnotations | default dict) .own) }}
{{- end }}

{{/* bytes of a quantity such as 1.5Gi */}}
{{- define "vignette.bytes" -}}
{{- $factors := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- $unit := regexFind "[A-Za-z]+$" (toString .) -}}
{{- mulf (float64 (trimSuffix $unit (toString .))) (index $factors $unit) -}}
{{- end }}

{{/* where pods run that need no certain host, which radiod's do */}}
{{- define "vignette.scheduling" -}}
nodeSelector: {{- toYaml .Values.nodeSelector | nindent 2 }}
tolerations: {{- toYaml .Values.tolerations | nindent 2 }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}
