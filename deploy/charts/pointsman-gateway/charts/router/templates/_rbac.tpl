{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
The ServiceAccount of the picker and its rights: no more than deploy/rbac lists.
*/}}

{{- define "pointsman.serviceAccount" -}}
---
apiVersion: v1
kind: ServiceAccount
{{ include "pointsman.metadata" (list . (include "pointsman.name" .)) }}
{{- end -}}

{{/* A Role and its RoleBinding. Given: a list of the context, the name of the Role, its rules as YAML, the name of the binding. */}}
{{- define "pointsman.role" -}}
{{- $context := index . 0 -}}
{{- $name := index . 1 -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
{{ include "pointsman.metadata" (list $context $name) }}
rules:
  {{- index . 2 | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
{{ include "pointsman.metadata" (list $context (index . 3)) }}
subjects:
  - kind: ServiceAccount
    name: {{ include "pointsman.name" $context }}
    namespace: {{ $context.Release.Namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
{{- end -}}

{{- define "pointsman.podRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
{{- end -}}

{{- define "pointsman.poolRules" -}}
- apiGroups: [inference.networking.k8s.io, inference.networking.x-k8s.io]
  resources: [inferencepools]
  verbs: [get, list, watch]
- apiGroups: [llm-d.ai, inference.networking.x-k8s.io]
  resources: [inferenceobjectives, inferencemodelrewrites]
  verbs: [get, list, watch]
- apiGroups: [inference.networking.x-k8s.io]
  resources: [inferencemodels]
  verbs: [get, list, watch]
{{- end -}}

{{- define "pointsman.leaseRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end -}}

{{- define "pointsman.rbac" -}}
{{- $name := include "pointsman.name" . -}}
{{ include "pointsman.serviceAccount" . }}
{{ include "pointsman.role" (list . (printf "%s-sa" $name) (include "pointsman.podRules" .) (printf "%s-sa" $name)) }}
{{- if or .Values.router.inferencePool.create (include "pointsman.poolsFollowPools" .) }}
{{ include "pointsman.role" (list . (printf "%s-non-sa" $name) (include "pointsman.poolRules" .) (printf "%s-non-sa" $name)) }}
{{- end }}
{{- if include "pointsman.elects" . }}
{{ include "pointsman.role" (list . (printf "%s-leader-election" $name) (include "pointsman.leaseRules" .) (printf "%s-leader-election-binding" $name)) }}
{{- end }}
{{- if include "pointsman.flagIsOn" (list . "metrics-endpoint-auth") }}
{{ include "pointsman.metricsAuthRole" . }}
{{- end }}
{{- include "pointsman.poolsRbac" . }}
{{- end -}}

{{/* The right to ask who reads the metrics, and for Prometheus, which reads with the token of this account, to read them. */}}
{{- define "pointsman.metricsAuthRole" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "pointsman.clusterName" . }}
  labels:
    {{- include "pointsman.labels" . | nindent 4 }}
rules:
  - apiGroups: [authentication.k8s.io]
    resources: [tokenreviews]
    verbs: [create]
  - apiGroups: [authorization.k8s.io]
    resources: [subjectaccessreviews]
    verbs: [create]
  {{- if .Values.router.monitoring.prometheus.enabled }}
  - nonResourceURLs: [/metrics]
    verbs: [get]
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "pointsman.clusterName" . }}
  labels:
    {{- include "pointsman.labels" . | nindent 4 }}
subjects:
  - kind: ServiceAccount
    name: {{ include "pointsman.name" . }}
    namespace: {{ .Release.Namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "pointsman.clusterName" . }}
{{- end -}}
