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
{{- include "gateway.checkClass" . -}}
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

{{/*
Name of the Gateway that the route of the release leads from.
*/}}
{{- define "gateway.name" -}}
{{- .Values.httpRoute.inferenceGatewayName | default (printf "%s-inference-gateway" .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/*
Istio and GKE need objects that other gateways do not know: the class of a Gateway that is there tells. Rendering
without a cluster finds none.
*/}}
{{- define "gateway.checkClass" -}}
{{- if and .Values.httpRoute.create (.Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1/Gateway") -}}
{{- $name := include "gateway.name" . -}}
{{- $namespace := .Values.httpRoute.inferenceGatewayNamespace | default .Release.Namespace -}}
{{- $gateway := lookup "gateway.networking.k8s.io/v1" "Gateway" $namespace $name | default dict -}}
{{- $class := dig "spec" "gatewayClassName" "" $gateway -}}
{{- $provider := "" -}}
{{- if or (eq $class "istio") (hasPrefix "istio-" $class) -}}{{- $provider = "istio" -}}{{- end -}}
{{- if hasPrefix "gke-l7-" $class -}}{{- $provider = "gke" -}}{{- end -}}
{{- if and $provider (ne $provider (.Values.provider.name | default "none")) -}}
{{- fail (printf "provider.name: the Gateway %s/%s is of class %s, which needs objects of its own to reach the picker; set provider.name=%s" $namespace $name $class $provider) -}}
{{- end -}}
{{- end -}}
{{- end -}}
