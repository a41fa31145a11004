{{/*
Checks of the values that only this chart has.
*/}}

{{- define "gateway.checks" -}}
{{- $provider := .Values.provider -}}
{{- include "pointsman.checkChoice" (list "provider.name" ($provider.name | default "none") (list "none" "gke" "istio")) -}}
{{- include "pointsman.checkKeys" (list "provider." $provider (list "gke" "istio" "name")) -}}
{{- include "pointsman.checkKeys" (list "httpRoute." .Values.httpRoute (list "baseModel" "create" "headerMatches" "inferenceGatewayName" "inferenceGatewayNamespace" "requestTimeout")) -}}
{{- if .Values.router.proxy.enabled -}}
{{- fail "router.proxy.enabled: the gateway is the proxy here; use the chart pointsman-standalone for one of your own" -}}
{{- end -}}
{{- if and .Values.httpRoute.create (not .Values.router.inferencePool.create) -}}
{{- fail "httpRoute.create: the route leads to an InferencePool; set router.inferencePool.create=true" -}}
{{- end -}}
{{- if include "pointsman.preferredBackends" . -}}
{{- if ne $provider.name "gke" -}}
{{- fail "provider.gke.preferredBackends.enabled: only the load balancers of GKE have preferred backends; set provider.name=gke" -}}
{{- end -}}
{{- range list "preferredReplicas" "defaultReplicas" -}}
{{- if lt (get $provider.gke.preferredBackends . | int) 1 -}}
{{- fail (printf "provider.gke.preferredBackends.%s: must be at least 1" .) -}}
{{- end -}}
{{- end -}}
{{- include "pointsman.checkChoice" (list "provider.gke.preferredBackends.balancingMode" $provider.gke.preferredBackends.balancingMode (list "RATE" "UTILIZATION" "CONNECTION")) -}}
{{- end -}}
{{- end -}}
