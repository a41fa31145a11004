{{/* Health check of a Service of the picker. Given: a list of the context, the name of the policy, the Service. */}}
{{- define "gke.pickerHealth" -}}
{{- $context := index . 0 -}}
---
apiVersion: networking.gke.io/v1
kind: HealthCheckPolicy
{{ include "pointsman.metadata" (list $context (index . 1)) }}
spec:
  targetRef: {group: "", kind: Service, name: {{ index . 2 }}}
  default:
    config:
      type: GRPC
      grpcHealthCheck: {portSpecification: USE_FIXED_PORT, port: {{ include "pointsman.healthPort" $context }}}
{{- end -}}
