{{- define "ringwise.fullname" -}}
{{- if contains "ringwise" .Release.Name }}{{ .Release.Name | trunc 30 | trimSuffix "-" }}
{{- else }}{{ printf "%s-ringwise" (.Release.Name | trunc 21 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "ringwise.labels" -}}
app.kubernetes.io/name: ringwise
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "ringwise.image" -}}
{{- $repository := required "image.repository is required: no image is published; contrib/helm/Dockerfile builds one" .Values.image.repository -}}
{{- if .Values.image.digest }}{{ printf "%s@%s" $repository .Values.image.digest }}
{{- else }}{{ printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) }}{{ end }}
{{- end }}

{{/* Mistakes that the schema cannot find. */}}
{{- define "ringwise.validate" -}}
{{- if not .Values.groups }}{{ fail "groups is required: at least one group of nodes, with name, nodeSelector and config" }}{{ end }}
{{- $names := dict }}{{ $selectors := dict }}
{{- range .Values.groups }}
{{- $selector := toJson .nodeSelector }}
{{- if hasKey $names .name }}{{ fail (printf "groups: two groups are named %s" .name) }}{{ end }}
{{- if hasKey $selectors $selector }}{{ fail (printf "groups: %s and %s select the same nodes" (get $selectors $selector) .name) }}{{ end }}
{{- $_ := set $names .name true }}{{ $_ := set $selectors $selector .name }}
{{- end }}
{{- if and (hasKey $selectors "{}") (gt (len .Values.groups) 1) }}
{{- fail (printf "groups: %s selects every node, so it must be the only group" (get $selectors "{}")) }}{{ end }}
{{- if and .Values.podMonitor.enabled (not .Values.exporter.enabled) }}{{ fail "podMonitor.enabled needs exporter.enabled" }}{{ end }}
{{- if and .Values.prometheusRule.enabled (not .Values.podMonitor.enabled) }}{{ fail "prometheusRule.enabled needs podMonitor.enabled" }}{{ end }}
{{- end }}
