{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
What Prometheus needs to read the metrics.
*/}}

{{- define "pointsman.monitoring" -}}
{{- $prometheus := .Values.router.monitoring.prometheus -}}
{{- if $prometheus.enabled }}
{{- if eq (include "pointsman.monitoringProvider" .) "gmp" }}
{{- if $prometheus.auth.enabled }}
{{ include "pointsman.googleMonitoring" . }}
{{- end }}
{{- else }}
{{ include "pointsman.serviceMonitor" . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "pointsman.serviceMonitor" -}}
{{- $prometheus := .Values.router.monitoring.prometheus -}}
{{- if $prometheus.auth.enabled }}
---
apiVersion: v1
kind: Secret
{{ include "pointsman.metadata" (list . $prometheus.auth.secretName) }}
  annotations:
    kubernetes.io/service-account.name: {{ include "pointsman.name" . }}
type: kubernetes.io/service-account-token
{{- end }}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
{{ include "pointsman.metadata" (list . (printf "%s-monitor" (include "pointsman.name" .))) }}
    {{- with $prometheus.extraLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  jobLabel: {{ include "pointsman.name" . }}
  namespaceSelector:
    matchNames: [{{ .Release.Namespace }}]
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ include "pointsman.name" . }}
  endpoints:
    - port: http-metrics
      path: /metrics
      interval: {{ .Values.router.monitoring.interval }}
      {{- if $prometheus.auth.enabled }}
      authorization:
        credentials:
          name: {{ $prometheus.auth.secretName }}
          key: token
      {{- end }}
{{- end -}}

{{/* Google's managed Prometheus: a reader's account with its token, and the right of the collector to read the token. */}}
{{- define "pointsman.googleMonitoring" -}}
{{- $release := .Release.Name -}}
{{- $namespace := .Release.Namespace -}}
{{- $account := printf "%s-metrics-reader-sa" $release -}}
{{- $secret := printf "%s-metrics-reader-secret" $release -}}
{{- $reader := printf "%s-%s-metrics-reader" $namespace $release -}}
{{- $collector := dig "provider" "gmp" "autopilot" false .Values.router.monitoring | ternary "gke-gmp-system" "gmp-system" -}}
---
apiVersion: v1
kind: ServiceAccount
{{ include "pointsman.metadata" (list . $account) }}
---
apiVersion: v1
kind: Secret
{{ include "pointsman.metadata" (list . $secret) }}
  annotations:
    kubernetes.io/service-account.name: {{ $account }}
type: kubernetes.io/service-account-token
---
apiVersion: monitoring.googleapis.com/v1
kind: PodMonitoring
{{ include "pointsman.metadata" (list . $release) }}
spec:
  selector:
    matchLabels:
      {{- include "pointsman.selector" . | nindent 6 }}
  endpoints:
    - port: metrics
      scheme: http
      path: /metrics
      interval: {{ .Values.router.monitoring.interval }}
      authorization:
        type: Bearer
        credentials:
          secret: {name: {{ $secret }}, key: token}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $reader }}
  labels:
    {{- include "pointsman.labels" . | nindent 4 }}
rules:
  - nonResourceURLs: [/metrics]
    verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $reader }}-role-binding
  labels:
    {{- include "pointsman.labels" . | nindent 4 }}
subjects:
  - kind: ServiceAccount
    name: {{ $account }}
    namespace: {{ $namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $reader }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
{{ include "pointsman.metadata" (list . (printf "%s-secret-read" (printf "%s-metrics-reader" $release))) }}
rules:
  - apiGroups: [""]
    resources: [secrets]
    resourceNames: [{{ $secret }}]
    verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
{{ include "pointsman.metadata" (list . (printf "%s:collector:%s-%s-metrics-reader-secret-read" $collector $namespace $release)) }}
subjects:
  - kind: ServiceAccount
    name: collector
    namespace: {{ $collector }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $release }}-metrics-reader-secret-read
{{- end -}}
