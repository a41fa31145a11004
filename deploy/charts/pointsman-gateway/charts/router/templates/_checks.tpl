{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
What is checked before anything is rendered. A wrong value ends the rendering with one line: the value, what is wrong with
it, what to write instead.
*/}}

{{/* Given: a list of the context and the keys that the chart itself knows beside `router`. */}}
{{- define "pointsman.checks" -}}
{{- $context := index . 0 -}}
{{- include "pointsman.checks.movedKeys" $context -}}
{{- include "pointsman.checkKeys" (list "" $context.Values (concat (index . 1) (list "router" "global"))) -}}
{{- include "pointsman.checks.keys" $context -}}
{{- include "pointsman.checks.epp" $context -}}
{{- include "pointsman.checks.flags" $context -}}
{{- include "pointsman.checks.modelServers" $context -}}
{{- include "pointsman.checks.pool" $context -}}
{{- include "pointsman.checks.monitoring" $context -}}
{{- include "pointsman.checks.tokenizer" $context -}}
{{- include "pointsman.checks.pools" $context -}}
{{- end -}}

{{/* Keys of the charts of the Gateway API Inference Extension, and where their values are now. */}}
{{- define "pointsman.checks.movedKeys" -}}
{{- $moved := dict
  "inferenceExtension" "router.epp, router.monitoring, router.tracing and router.latencyPredictor"
  "inferencePool" "router.inferencePool and router.modelServers"
  "inferenceObjectives" "router.inferenceObjectives"
  "experimentalHttpRoute" (hasSuffix "gateway" .Chart.Name | ternary "httpRoute" "httpRoute of the chart pointsman-gateway") -}}
{{- range $old, $new := $moved -}}
{{- if hasKey $.Values $old -}}
{{- fail (printf "%s: this key is no longer read; write its values under %s" $old $new) -}}
{{- end -}}
{{- end -}}
{{- if hasKey .Values.router.epp "parser" -}}
{{- fail (printf "router.epp.parser: this key is no longer read; write router.epp.parsers: [%v]" .Values.router.epp.parser) -}}
{{- end -}}
{{- end -}}

{{- define "pointsman.checks.keys" -}}
{{- $router := .Values.router -}}
{{- include "pointsman.checkKeys" (list "router." $router (list "clusterDomain" "defaultPool" "epp" "extraServicePorts" "global" "inferenceObjectives" "inferencePool" "latencyPredictor" "metricsPort" "modelServers" "monitoring" "pools" "proxy" "tokenizer" "tracing")) -}}
{{- include "pointsman.checkKeys" (list "router.epp." $router.epp (list "affinity" "env" "extProcPort" "extraContainerPorts" "flags" "grpcHealthPort" "image" "imagePullSecrets" "metricsDataSource" "parsers" "pluginsConfig" "pluginsConfigFile" "pluginsCustomConfig" "podAnnotations" "replicas" "resources" "tolerations" "volumeMounts" "volumes")) -}}
{{- include "pointsman.checkKeys" (list "router.epp.image." $router.epp.image (list "pullPolicy" "registry" "repository" "tag")) -}}
{{- include "pointsman.checkKeys" (list "router.epp.metricsDataSource." $router.epp.metricsDataSource (list "insecureSkipVerify" "path" "scheme")) -}}
{{- include "pointsman.checkKeys" (list "router.inferencePool." $router.inferencePool (list "create" "failureMode")) -}}
{{- include "pointsman.checkKeys" (list "router.modelServers." $router.modelServers (list "matchLabels" "protocol" "targetPortNumber" "targetPorts" "type")) -}}
{{- include "pointsman.checkKeys" (list "router.monitoring." $router.monitoring (list "interval" "prometheus" "provider")) -}}
{{- include "pointsman.checkKeys" (list "router.monitoring.prometheus." $router.monitoring.prometheus (list "auth" "enabled" "extraLabels")) -}}
{{- include "pointsman.checkKeys" (list "router.monitoring.prometheus.auth." $router.monitoring.prometheus.auth (list "enabled" "secretName")) -}}
{{- include "pointsman.checkKeys" (list "router.tracing." $router.tracing (list "enabled" "otelExporterEndpoint" "sampling")) -}}
{{- include "pointsman.checkKeys" (list "router.latencyPredictor." $router.latencyPredictor (list "enabled" "eppEnv" "predictionServers" "trainingServer")) -}}
{{- include "pointsman.checkKeys" (list "router.tokenizer." $router.tokenizer (list "args" "command" "enabled" "env" "extraArgs" "image" "initContainers" "modelName" "port" "readinessProbe" "resources" "volumeMounts" "volumes")) -}}
{{- include "pointsman.checkKeys" (list "router.proxy." $router.proxy (list "args" "agentgateway" "command" "configMap" "enabled" "env" "failOpen" "image" "imagePullPolicy" "livenessProbe" "mode" "name" "ports" "presets" "proxyType" "readinessProbe" "replicas" "resources" "securityContext" "startupProbe" "volumeMounts" "volumes")) -}}
{{- end -}}

{{- define "pointsman.checks.epp" -}}
{{- $epp := .Values.router.epp -}}
{{- if lt (int $epp.replicas) 1 -}}
{{- fail (printf "router.epp.replicas: must be at least 1, got %v" $epp.replicas) -}}
{{- end -}}
{{- range list "cpu" "memory" -}}
{{- if not (dig "requests" . "" ($epp.resources | default dict)) -}}
{{- fail (printf "router.epp.resources.requests.%s: needed, or the picker is the first to starve on a full node" .) -}}
{{- end -}}
{{- end -}}
{{- range $epp.parsers -}}
{{- include "pointsman.checkChoice" (list "router.epp.parsers" . (list "openai-parser" "anthropic-parser" "vllmgrpc-parser" "vllmhttp-parser" "sglanghttp-parser" "vertexai-parser" "passthrough-parser")) -}}
{{- end -}}
{{- $files := concat (list "default-plugins.yaml" "payload-agnostic.yaml") (keys (include "pointsman.ownConfigurations" . | fromYaml) | sortAlpha) | uniq -}}
{{- if and $epp.pluginsConfig (hasKey ($epp.pluginsCustomConfig | default dict) $epp.pluginsConfigFile) -}}
{{- fail (printf "router.epp.pluginsConfig: %q is in router.epp.pluginsCustomConfig too; keep one of them, or choose another router.epp.pluginsConfigFile" $epp.pluginsConfigFile) -}}
{{- end -}}
{{- if not (has $epp.pluginsConfigFile $files) -}}
{{- fail (printf "router.epp.pluginsConfigFile: no file %q: write it into router.epp.pluginsCustomConfig%s" $epp.pluginsConfigFile (include "pointsman.didYouMean" (list $epp.pluginsConfigFile $files))) -}}
{{- end -}}
{{- include "pointsman.checkChoice" (list "router.epp.metricsDataSource.scheme" $epp.metricsDataSource.scheme (list "http" "https")) -}}
{{- end -}}

{{/* Flags that the chart sets from other values. */}}
{{- define "pointsman.checks.flags" -}}
{{- $flags := .Values.router.epp.flags | default dict -}}
{{- $owned := dict
  "pool-name" "the pool has the name of the release; install under that name"
  "pool-namespace" "the pool is in the namespace of the release; install with --namespace"
  "pool-group" "the chart makes an InferencePool of inference.networking.k8s.io"
  "endpoint-selector" "set router.inferencePool.create=false and router.modelServers.matchLabels"
  "endpoint-target-ports" "set router.modelServers.targetPorts"
  "config-file" "set router.epp.pluginsConfigFile"
  "config-text" "set router.epp.pluginsConfig"
  "pools" "set router.pools" -}}
{{- range $name, $_ := $flags -}}
{{- if hasPrefix "-" $name -}}
{{- fail (printf "router.epp.flags.%s: flags have no dashes in front here; write %s" $name (trimPrefix "-" (trimPrefix "-" $name))) -}}
{{- end -}}
{{- with get $owned $name -}}
{{- fail (printf "router.epp.flags.%s: %s" $name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pointsman.checks.modelServers" -}}
{{- $servers := .Values.router.modelServers -}}
{{- if empty $servers.matchLabels -}}
{{- fail "router.modelServers.matchLabels: needed, such as {app: vllm}: the labels of the model servers' pods" -}}
{{- end -}}
{{- $type := $servers.type | default "vllm" -}}
{{- include "pointsman.checkChoice" (list "router.modelServers.type" $type (list "vllm" "sglang" "triton-tensorrt-llm" "trtllm-serve" "triton")) -}}
{{- include "pointsman.checkChoice" (list "router.modelServers.protocol" ($servers.protocol | default "http") (list "http" "grpc")) -}}
{{- $ports := include "pointsman.targetPorts" . | splitList "," | compact -}}
{{- if or (empty $ports) (gt (len $ports) 8) (ne (len $ports) (len (uniq $ports))) -}}
{{- fail "router.modelServers.targetPorts: one to eight different ports are needed, such as [{number: 8000}]" -}}
{{- end -}}
{{- if and (eq $type "vllm") (eq ($servers.protocol | default "http") "grpc") -}}
{{- range .Values.router.epp.parsers -}}
{{- if ne . "vllmgrpc-parser" -}}
{{- fail (printf "router.epp.parsers: %s cannot read the gRPC of vLLM; write vllmgrpc-parser, or router.modelServers.protocol=http" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pointsman.checks.pool" -}}
{{- $router := .Values.router -}}
{{- $mode := $router.inferencePool.failureMode | toString -}}
{{- if eq $mode "FailClosed" -}}
{{- fail "router.inferencePool.failureMode: the API server refuses FailClosed; write FailClose" -}}
{{- end -}}
{{- include "pointsman.checkChoice" (list "router.inferencePool.failureMode" $mode (list "FailOpen" "FailClose")) -}}
{{- if and $router.inferenceObjectives (not $router.inferencePool.create) -}}
{{- fail "router.inferenceObjectives: objectives belong to a pool; set router.inferencePool.create=true" -}}
{{- end -}}
{{- range $index, $objective := $router.inferenceObjectives -}}
{{- include "pointsman.checkKeys" (list (printf "router.inferenceObjectives[%d]." $index) $objective (list "name" "priority")) -}}
{{- if not $objective.name -}}
{{- fail (printf "router.inferenceObjectives[%d].name: needed" $index) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pointsman.checks.monitoring" -}}
{{- $monitoring := .Values.router.monitoring -}}
{{- include "pointsman.checkChoice" (list "router.monitoring.provider.name" (include "pointsman.monitoringProvider" .) (list "prometheusoperator" "gmp")) -}}
{{- if and $monitoring.prometheus.enabled $monitoring.prometheus.auth.enabled (not $monitoring.prometheus.auth.secretName) -}}
{{- fail "router.monitoring.prometheus.auth.secretName: needed: the Secret with the token that reads the metrics" -}}
{{- end -}}
{{- end -}}

{{- define "pointsman.checks.tokenizer" -}}
{{- if and .Values.router.tokenizer.enabled (not .Values.router.tokenizer.modelName) -}}
{{- fail "router.tokenizer.modelName: needed with router.tokenizer.enabled: the model whose tokens are counted" -}}
{{- end -}}
{{- end -}}
