{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
Names and labels. All of them are those of llm-d-router's charts, so that a release of theirs can be upgraded in place:
the selector of a Deployment cannot be changed.
*/}}

{{- define "pointsman.base" -}}
{{- .Release.Name | lower | trunc 40 -}}
{{- end -}}

{{- define "pointsman.name" -}}
{{- printf "%s-epp" (include "pointsman.base" .) -}}
{{- end -}}

{{/* Name of the ClusterRole: objects without a namespace need the namespace in their name. */}}
{{- define "pointsman.clusterName" -}}
{{- printf "%s-%s-epp" (include "pointsman.base" .) (.Release.Namespace | lower | trunc 40) -}}
{{- end -}}

{{- define "pointsman.proxyName" -}}
{{- printf "%s-proxy" (include "pointsman.base" .) -}}
{{- end -}}

{{/* Headless Service over the model servers, for a proxy that fails open. */}}
{{- define "pointsman.modelServersName" -}}
{{- printf "%s-model-servers" (include "pointsman.base" .) -}}
{{- end -}}

{{/* "gateway" with an InferencePool, "standalone" without one. */}}
{{- define "pointsman.mode" -}}
{{- if .Values.router.inferencePool.create -}}gateway{{- else -}}standalone{{- end -}}
{{- end -}}

{{- define "pointsman.labels" -}}
app.kubernetes.io/name: {{ include "pointsman.name" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "pointsman.selector" -}}
llm-d-router-{{ include "pointsman.mode" . }}: {{ include "pointsman.name" . }}
{{- end -}}

{{- define "pointsman.modeLabel" -}}
llm-d.ai/igw-mode: llm-d-router-{{ include "pointsman.mode" . }}
{{- end -}}

{{- define "pointsman.proxySelector" -}}
llm-d-router-proxy: {{ include "pointsman.proxyName" . }}
{{- end -}}

{{/* name, namespace and labels of an object, two spaces in. Given: a list of the context and the name. */}}
{{- define "pointsman.metadata" -}}
{{- $context := index . 0 -}}
metadata:
  name: {{ index . 1 }}
  namespace: {{ $context.Release.Namespace }}
  labels:
    {{- include "pointsman.labels" $context | nindent 4 }}
{{- end -}}

{{/* A container image by its parts; what is empty is left out. Given: a map with registry, repository, tag. */}}
{{- define "pointsman.imageName" -}}
{{- with .registry }}{{ . }}/{{ end }}{{ .repository }}{{ with .tag }}:{{ . }}{{ end -}}
{{- end -}}

{{/* "true" when the values still name llm-d-router's own image, as after `helm upgrade --reuse-values`. */}}
{{- define "pointsman.peerImage" -}}
{{- if eq .Values.router.epp.image.repository "llm-d-router-endpoint-picker" -}}true{{- end -}}
{{- end -}}

{{- define "pointsman.image" -}}
{{- if include "pointsman.peerImage" . -}}
{{- printf "pointsman:%s" .Chart.AppVersion -}}
{{- else -}}
{{- $image := .Values.router.epp.image -}}
{{- include "pointsman.imageName" (dict "registry" $image.registry "repository" $image.repository "tag" ($image.tag | default .Chart.AppVersion)) -}}
{{- end -}}
{{- end -}}
