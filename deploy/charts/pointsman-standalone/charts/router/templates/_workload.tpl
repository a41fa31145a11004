{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
The Deployment of the picker; with preferred backends (GKE) a StatefulSet, whose pods have names of their own.
*/}}

{{- define "pointsman.workload" -}}
{{- $each := include "pointsman.preferredBackends" . -}}
---
apiVersion: apps/v1
kind: {{ empty $each | ternary "Deployment" "StatefulSet" }}
{{ include "pointsman.metadata" (list . (include "pointsman.name" .)) }}
    {{- include "pointsman.modeLabel" . | nindent 4 }}
spec:
  {{- if $each }}
  replicas: {{ include "pointsman.backends" . | fromYamlArray | len }}
  serviceName: {{ include "pointsman.name" . }}
  podManagementPolicy: Parallel
  {{- else }}
  replicas: {{ .Values.router.epp.replicas | int }}
  # One picker knows what all requests are doing: an old and a new one side by side would each see half of it.
  strategy: {type: Recreate}
  {{- end }}
  selector:
    matchLabels:
      {{- include "pointsman.selector" . | nindent 6 }}
  template:
    {{- include "pointsman.podTemplate" . | nindent 4 }}
{{- end -}}
