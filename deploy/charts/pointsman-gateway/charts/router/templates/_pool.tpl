{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
The InferencePool and its objectives.
*/}}

{{- define "pointsman.pool" -}}
{{- if .Values.router.inferencePool.create }}
---
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
{{ include "pointsman.metadata" (list . .Release.Name) }}
spec:
  selector:
    matchLabels:
      {{- range $key, $value := .Values.router.modelServers.matchLabels }}
      {{ $key }}: {{ $value | toString | quote }}
      {{- end }}
  targetPorts:
    {{- range include "pointsman.targetPorts" . | splitList "," }}
    - number: {{ . }}
    {{- end }}
  appProtocol: {{ eq (.Values.router.modelServers.protocol | default "http") "grpc" | ternary "kubernetes.io/h2c" "http" }}
  endpointPickerRef:
    name: {{ include "pointsman.name" . }}{{ if include "pointsman.preferredBackends" . }}-backup{{ end }}
    port:
      number: {{ .Values.router.epp.extProcPort | int }}
    failureMode: {{ .Values.router.inferencePool.failureMode }}
{{- range .Values.router.inferenceObjectives }}
---
apiVersion: llm-d.ai/v1alpha2
kind: InferenceObjective
{{ include "pointsman.metadata" (list $ .name) }}
spec:
  priority: {{ .priority | default 0 | int }}
  poolRef:
    group: inference.networking.k8s.io
    name: {{ $.Release.Name }}
{{- end }}
{{- end }}
{{- end -}}
