{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
Further pools of the picker, beside that of the release: the file of --pools, which names them.
*/}}

{{- define "pointsman.poolsFile" -}}
{{- $file := dict "pools" .Values.router.pools -}}
{{- with .Values.router.defaultPool -}}{{- $_ := set $file "default" . -}}{{- end -}}
{{- toYaml $file -}}
{{- end -}}

{{/* Ports of pools, as ports of the container. */}}
{{- define "pointsman.poolContainerPorts" -}}
{{- range .Values.router.pools -}}
{{- with .port }}
- {name: pool-{{ int . }}, containerPort: {{ int . }}}
{{- end }}
{{- end }}
{{- end -}}

{{/* The same, as ports of the Service: an InferencePool names one of them in its endpointPickerRef. */}}
{{- define "pointsman.poolServicePorts" -}}
{{- range .Values.router.pools -}}
{{- with .port }}
- name: grpc-pool-{{ int . }}
  protocol: TCP
  port: {{ int . }}
  targetPort: pool-{{ int . }}
  appProtocol: kubernetes.io/h2c
{{- end }}
{{- end }}
{{- end -}}

{{/* "true" when a further pool follows an InferencePool of the release's namespace. */}}
{{- define "pointsman.poolsFollowPools" -}}
{{- $found := "" -}}
{{- range .Values.router.pools -}}
{{- if .inferencePool -}}
{{- if eq (.inferencePool.namespace | default $.Release.Namespace) $.Release.Namespace -}}{{- $found = "true" -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}

{{/* Rights in the other namespaces from which pools have their endpoints: a Role in each. */}}
{{- define "pointsman.poolsRbac" -}}
{{- $name := printf "%s-pools" (include "pointsman.clusterName" .) -}}
{{- $namespaces := dict -}}
{{- range .Values.router.pools -}}
{{- range list .inferencePool .selector -}}
{{- with . -}}
{{- with .namespace -}}
{{- if ne . $.Release.Namespace -}}{{- $_ := set $namespaces . true -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range keys $namespaces | sortAlpha }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ . }}
  labels:
    {{- include "pointsman.labels" $ | nindent 4 }}
rules:
  {{- include "pointsman.podRules" $ | nindent 2 }}
  {{- include "pointsman.poolRules" $ | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ . }}
  labels:
    {{- include "pointsman.labels" $ | nindent 4 }}
subjects:
  - kind: ServiceAccount
    name: {{ include "pointsman.name" $ }}
    namespace: {{ $.Release.Namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
{{- end }}
{{- end -}}

{{- define "pointsman.checks.pools" -}}
{{- $router := .Values.router -}}
{{- if and $router.defaultPool (not $router.pools) -}}
{{- fail "router.defaultPool: there are no further pools; write them into router.pools" -}}
{{- end -}}
{{- $ports := dict (include "pointsman.grpcPort" .) "router.epp.flags.grpc-port" (include "pointsman.healthPort" .) "router.epp.grpcHealthPort" (include "pointsman.metricsPort" .) "router.epp.flags.metrics-port" (toString (int $router.epp.extProcPort)) "router.epp.extProcPort" (toString (int $router.metricsPort)) "router.metricsPort" -}}
{{- range $index, $pool := $router.pools -}}
{{- $path := printf "router.pools[%d]." $index -}}
{{- include "pointsman.checkKeys" (list $path $pool (list "configFile" "configuration" "endpointsFile" "indexBlocks" "inferencePool" "maxEndpoints" "models" "name" "port" "selector")) -}}
{{- if not $pool.name -}}
{{- fail (printf "%sname: needed: the value of x-pointsman-pool" $path) -}}
{{- end -}}
{{- if eq $pool.name (include "pointsman.ownPool" $) -}}
{{- fail (printf "%sname: %s is the pool of the release; choose another name" $path $pool.name) -}}
{{- end -}}
{{- with $pool.port -}}
{{- $port := toString (int .) -}}
{{- with get $ports $port -}}
{{- fail (printf "%sport: %s is the port of %s; choose another one" $path $port .) -}}
{{- end -}}
{{- $_ := set $ports $port (printf "%sport" $path) -}}
{{- end -}}
{{- end -}}
{{- if and $router.pools (hasKey (include "pointsman.ownConfigurations" . | fromYaml) "pools.yaml") -}}
{{- fail "router.epp.pluginsCustomConfig.pools.yaml: this name is taken by the file of router.pools; choose another one" -}}
{{- end -}}
{{- if and $router.pools $router.proxy.enabled (eq (include "pointsman.proxyType" .) "envoy") (include "pointsman.failOpen" .) -}}
{{- fail "router.proxy.failOpen: set it to false with router.pools: without the picker, requests of every pool would go to the model servers of the release" -}}
{{- end -}}
{{- end -}}

{{/* Name of the pool of the release. */}}
{{- define "pointsman.ownPool" -}}
{{- include "pointsman.flag" (list . "pool-name") | default "default" -}}
{{- end -}}
