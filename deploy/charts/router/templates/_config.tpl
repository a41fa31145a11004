{{/*
The ConfigMap with the configurations of the picker.
*/}}

{{/* Parsers of the default configuration; none = chosen by the path of the request. */}}
{{- define "pointsman.parsers" -}}
{{- $type := .Values.router.modelServers.type | default "vllm" -}}
{{- if and (eq $type "vllm") (eq (.Values.router.modelServers.protocol | default "http") "grpc") -}}
vllmgrpc-parser
{{- else if .Values.router.epp.parsers -}}
{{- join "," .Values.router.epp.parsers -}}
{{- else if eq $type "triton" -}}
passthrough-parser
{{- end -}}
{{- end -}}

{{/* Triton without TensorRT-LLM tells no use of its KV cache, so nothing weighs it. */}}
{{- define "pointsman.defaultConfiguration" -}}
{{- $predicts := .Values.router.latencyPredictor.enabled -}}
{{- $parsers := include "pointsman.parsers" . | splitList "," | compact -}}
{{- $type := .Values.router.modelServers.type | default "vllm" -}}
# Weights of load and prefix cache{{ if $predicts }}, replaced by predicted latency{{ end }}. Another one: router.epp.pluginsConfig.
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: metrics-data-source
  parameters:
    {{- toYaml (pick .Values.router.epp.metricsDataSource "insecureSkipVerify" "path" "scheme") | nindent 4 }}
- type: core-metrics-extractor
  {{- if ne $type "vllm" }}
  parameters: {defaultEngine: {{ $type }}}
  {{- end }}
{{- if $predicts }}
- type: predicted-latency-producer
# Near-whole prefixes first, over the whole pool; then half-warm ones among the servers that meet the latency goals.
- name: whole-prefix
  type: prefix-cache-affinity-filter
  parameters: {affinityThreshold: 0.99, ttftSource: latencyPredictor, maxTTFTPenaltyMs: 5000}
- name: most-of-prefix
  type: prefix-cache-affinity-filter
  parameters: {affinityThreshold: 0.8, ttftSource: latencyPredictor, maxTTFTPenaltyMs: 5000}
- type: slo-headroom-tier-filter
- type: latency-scorer
- type: weighted-random-picker
- type: latency-slo-admitter
{{- else }}
- type: queue-scorer
{{- if ne $type "triton" }}
- type: kv-cache-utilization-scorer
{{- end }}
- type: prefix-cache-scorer
{{- end }}
{{- range $parsers }}
- type: {{ . }}
{{- end }}
schedulingProfiles:
- name: default
  plugins:
{{- if $predicts }}
  - pluginRef: whole-prefix
  - pluginRef: slo-headroom-tier-filter
  - pluginRef: most-of-prefix
  - pluginRef: latency-scorer
  - pluginRef: weighted-random-picker
{{- else }}
  - {pluginRef: queue-scorer, weight: 2}
  {{- if ne $type "triton" }}
  - {pluginRef: kv-cache-utilization-scorer, weight: 2}
  {{- end }}
  - {pluginRef: prefix-cache-scorer, weight: 3}
{{- end }}
{{- with $parsers }}
requestHandler:
  parsers:
  {{- range . }}
  - pluginRef: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "pointsman.payloadAgnosticConfiguration" -}}
# For bodies that the picker cannot read: the least busy server, and the same one for a session.
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: passthrough-parser
- type: active-request-scorer
- type: session-affinity-scorer
requestHandler:
  parsers:
  - pluginRef: passthrough-parser
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: active-request-scorer, weight: 1}
  - {pluginRef: session-affinity-scorer, weight: 1}
{{- end -}}

{{/* Configurations of the values by file name: those of pluginsCustomConfig, and pluginsConfig in pluginsConfigFile. */}}
{{- define "pointsman.ownConfigurations" -}}
{{- $epp := .Values.router.epp -}}
{{- $files := deepCopy ($epp.pluginsCustomConfig | default dict) -}}
{{- with $epp.pluginsConfig -}}
{{- $_ := set $files $epp.pluginsConfigFile (toYaml .) -}}
{{- end -}}
{{- toYaml $files -}}
{{- end -}}

{{/* Configuration of the release where the values have it, else the empty string. */}}
{{- define "pointsman.ownConfiguration" -}}
{{- get (include "pointsman.ownConfigurations" . | fromYaml) .Values.router.epp.pluginsConfigFile | default "" | toString -}}
{{- end -}}

{{- define "pointsman.configMap" -}}
{{- $data := dict
  "default-plugins.yaml" (include "pointsman.defaultConfiguration" .)
  "payload-agnostic.yaml" (include "pointsman.payloadAgnosticConfiguration" .) -}}
{{- if .Values.router.pools -}}
{{- $_ := set $data "pools.yaml" (include "pointsman.poolsFile" .) -}}
{{- end -}}
---
apiVersion: v1
kind: ConfigMap
{{ include "pointsman.metadata" (list . (include "pointsman.name" .)) }}
data:
  {{- toYaml (merge (include "pointsman.ownConfigurations" . | fromYaml) $data) | nindent 2 }}
{{- end -}}
