{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
What follows from the values: the flags of the picker, and what else depends on them.
*/}}

{{/* "true" with more than one pool of load balancing (GKE): then a StatefulSet and one Service for each replica. */}}
{{- define "pointsman.preferredBackends" -}}
{{- if dig "gke" "preferredBackends" "enabled" false (.Values.provider | default dict) -}}true{{- end -}}
{{- end -}}

{{/* Labels of the model servers as a label selector. */}}
{{- define "pointsman.modelSelector" -}}
{{- $terms := list -}}
{{- range $key, $value := .Values.router.modelServers.matchLabels -}}
{{- $terms = append $terms (printf "%s=%s" $key (toString $value)) -}}
{{- end -}}
{{- join "," $terms -}}
{{- end -}}

{{/* Ports of the model servers, separated by commas. */}}
{{- define "pointsman.targetPorts" -}}
{{- $servers := .Values.router.modelServers -}}
{{- $ports := list -}}
{{- range $servers.targetPorts -}}{{- $ports = append $ports (.number | int | toString) -}}{{- end -}}
{{- if and (empty $ports) $servers.targetPortNumber -}}{{- $ports = list ($servers.targetPortNumber | int | toString) -}}{{- end -}}
{{- join "," $ports -}}
{{- end -}}

{{/* Flags of the picker as a YAML map: those that follow from other values, then router.epp.flags, which go before them. */}}
{{- define "pointsman.flags" -}}
{{- $epp := .Values.router.epp -}}
{{- $flags := dict
  "config-file" (printf "/config/%s" $epp.pluginsConfigFile)
  "grpc-health-port" ($epp.grpcHealthPort | default 9003 | int)
  "tracing" .Values.router.tracing.enabled
  "zap-encoder" "json" -}}
{{- if .Values.router.inferencePool.create -}}
{{- $_ := set $flags "pool-name" .Release.Name -}}
{{- $_ := set $flags "pool-namespace" .Release.Namespace -}}
{{- $_ := set $flags "pool-group" "inference.networking.k8s.io" -}}
{{- else -}}
{{- $_ := set $flags "endpoint-selector" (include "pointsman.modelSelector" .) -}}
{{- $_ := set $flags "endpoint-target-ports" (include "pointsman.targetPorts" .) -}}
{{- end -}}
{{- if and (gt (int $epp.replicas) 1) (not (include "pointsman.preferredBackends" .)) -}}
{{- $_ := set $flags "ha-enable-leader-election" true -}}
{{- end -}}
{{/* session-affinity-scorer is of Alpha stability. */}}
{{- if eq $epp.pluginsConfigFile "payload-agnostic.yaml" -}}
{{- $_ := set $flags "allow-experimental-plugins" true -}}
{{- end -}}
{{- if .Values.router.pools -}}
{{- $_ := set $flags "pools" "/config/pools.yaml" -}}
{{- end -}}
{{- if not .Values.router.monitoring.prometheus.auth.enabled -}}
{{- $_ := set $flags "metrics-endpoint-auth" false -}}
{{- end -}}
{{- if and .Values.router.proxy.enabled (eq (include "pointsman.proxyType" .) "agentgateway") -}}
{{- $_ := set $flags "secure-serving" false -}}
{{- end -}}
{{- toYaml (mergeOverwrite $flags (deepCopy ($epp.flags | default dict))) -}}
{{- end -}}

{{/* Value of a flag as text; empty when neither the chart nor the values set it. Given: a list of context and name. */}}
{{- define "pointsman.flag" -}}
{{- $flags := include "pointsman.flags" (index . 0) | fromYaml -}}
{{- if hasKey $flags (index . 1) -}}{{- get $flags (index . 1) | toString -}}{{- end -}}
{{- end -}}

{{/* "true" unless the flag is set to false. Given: a list of context and name. */}}
{{- define "pointsman.flagIsOn" -}}
{{- if not (has (include "pointsman.flag" . | lower) (list "false" "f" "0")) -}}true{{- end -}}
{{- end -}}

{{/* "true" when the picker takes part in an election. */}}
{{- define "pointsman.elects" -}}
{{- if include "pointsman.flag" (list . "ha-enable-leader-election") -}}
{{- include "pointsman.flagIsOn" (list . "ha-enable-leader-election") -}}
{{- end -}}
{{- end -}}

{{- define "pointsman.grpcPort" -}}
{{- include "pointsman.flag" (list . "grpc-port") | default "9002" -}}
{{- end -}}

{{- define "pointsman.healthPort" -}}
{{- include "pointsman.flag" (list . "grpc-health-port") -}}
{{- end -}}

{{- define "pointsman.metricsPort" -}}
{{- include "pointsman.flag" (list . "metrics-port") | default "9090" -}}
{{- end -}}

{{/* Arguments of the picker, one a line. Numbers as JSON writes them: Go's own form of a million is 1e+06. */}}
{{- define "pointsman.arguments" -}}
{{- range $name, $value := include "pointsman.flags" . | fromYaml -}}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
- {{ printf "--%s=%s" $name (kindIs "string" . | ternary (toString .) (toJson .)) | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Environment variables as a list, given as one or as a map of names to values. */}}
{{- define "pointsman.environment" -}}
{{- if kindIs "map" . -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ kindIs "string" $value | ternary (toString $value) (toJson $value) | quote }}
{{- end }}
{{- else if . -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* "gmp" or "prometheusoperator". */}}
{{- define "pointsman.monitoringProvider" -}}
{{- dig "provider" "name" "" .Values.router.monitoring | default "prometheusoperator" | lower -}}
{{- end -}}

{{/* "envoy" or "agentgateway". */}}
{{- define "pointsman.proxyType" -}}
{{- .Values.router.proxy.proxyType | default "envoy" | lower -}}
{{- end -}}

{{/* "sidecar" or "service". */}}
{{- define "pointsman.proxyMode" -}}
{{- .Values.router.proxy.mode | default "sidecar" | lower -}}
{{- end -}}

{{/* "true" when the proxy passes requests on without the picker. */}}
{{- define "pointsman.failOpen" -}}
{{- $given := .Values.router.proxy.failOpen -}}
{{- if kindIs "bool" $given -}}{{- if $given -}}true{{- end -}}
{{- else if eq (include "pointsman.proxyMode" .) "service" -}}true{{- end -}}
{{- end -}}

{{/* Port that the proxy listens on: that of the Service port "http". */}}
{{- define "pointsman.listenerPort" -}}
{{- $listener := "8081" -}}
{{- range .Values.router.extraServicePorts -}}
{{- if eq (toString .name) "http" -}}
{{- $target := .targetPort | default .port | toString -}}
{{- if regexMatch "^[0-9]+$" $target -}}{{- $listener = $target -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $listener -}}
{{- end -}}

{{/* Host of the picker as the proxy sees it. */}}
{{- define "pointsman.pickerHost" -}}
{{- if eq (include "pointsman.proxyMode" .) "service" -}}
{{- printf "%s.%s.svc.%s" (include "pointsman.name" .) .Release.Namespace (.Values.router.clusterDomain | default "cluster.local") -}}
{{- else -}}127.0.0.1{{- end -}}
{{- end -}}

{{/* Port of the picker as the proxy sees it. */}}
{{- define "pointsman.pickerPort" -}}
{{- if eq (include "pointsman.proxyMode" .) "service" -}}
{{- .Values.router.epp.extProcPort | int -}}
{{- else -}}{{- include "pointsman.grpcPort" . -}}{{- end -}}
{{- end -}}
