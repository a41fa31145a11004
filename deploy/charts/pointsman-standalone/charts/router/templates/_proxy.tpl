{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
The proxy of the standalone chart, as a second container of the picker's pod or as a Deployment of its own.
*/}}

{{- define "pointsman.proxyIsSidecar" -}}
{{- if and .Values.router.proxy.enabled (eq (include "pointsman.proxyMode" .) "sidecar") -}}true{{- end -}}
{{- end -}}

{{- define "pointsman.proxyIsService" -}}
{{- if and .Values.router.proxy.enabled (eq (include "pointsman.proxyMode" .) "service") -}}true{{- end -}}
{{- end -}}

{{/* Settings of the proxy: router.proxy over its preset, as YAML. */}}
{{- define "pointsman.proxy" -}}
{{- $given := .Values.router.proxy -}}
{{- $preset := get ($given.presets | default dict) (include "pointsman.proxyType" .) | default dict -}}
{{- toYaml (mergeOverwrite (deepCopy $preset) (omit (deepCopy $given) "presets" "proxyType" "mode" "replicas" "failOpen" "enabled")) -}}
{{- end -}}

{{- define "pointsman.proxyConfigMapName" -}}
{{- $proxy := include "pointsman.proxy" . | fromYaml -}}
{{- dig "configMap" "name" "" $proxy | default (include "pointsman.proxyName" .) -}}
{{- end -}}

{{/* Folder that the proxy reads its configuration from. */}}
{{- define "pointsman.proxyConfigPath" -}}
{{- eq (include "pointsman.proxyType" .) "envoy" | ternary "/etc/envoy" "/config" -}}
{{- end -}}

{{/* "true" when the values mount a folder there themselves. */}}
{{- define "pointsman.proxyMountsConfig" -}}
{{- $path := include "pointsman.proxyConfigPath" . -}}
{{- range (include "pointsman.proxy" . | fromYaml).volumeMounts -}}
{{- if eq .mountPath $path -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pointsman.proxyConfigMap" -}}
{{- if .Values.router.proxy.enabled -}}
{{- $proxy := include "pointsman.proxy" . | fromYaml -}}
{{- $data := deepCopy (dig "configMap" "data" dict $proxy) -}}
{{- if eq (include "pointsman.proxyType" .) "agentgateway" -}}
{{- $_ := set $data "config.yaml" (include "pointsman.agentgatewayConfiguration" .) -}}
{{- else if hasKey $data "envoy.yaml" -}}
{{- $_ := set $data "envoy.yaml" (tpl (get $data "envoy.yaml") .) -}}
{{- else -}}
{{- $_ := set $data "envoy.yaml" (include "pointsman.envoyConfiguration" .) -}}
{{- end }}
---
apiVersion: v1
kind: ConfigMap
{{ include "pointsman.metadata" (list . (include "pointsman.proxyConfigMapName" .)) }}
data:
  {{- toYaml $data | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "pointsman.proxyContainer" -}}
{{- $proxy := include "pointsman.proxy" . | fromYaml -}}
- name: {{ $proxy.name }}
  image: {{ $proxy.image }}
  imagePullPolicy: {{ $proxy.imagePullPolicy | default "IfNotPresent" }}
  {{- with $proxy.command }}
  command: {{ kindIs "slice" . | ternary . (list .) | toJson }}
  {{- end }}
  {{- with $proxy.args }}
  args:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "pointsman.environment" $proxy.env | trim }}
  env:
    {{- . | nindent 4 }}
  {{- end }}
  ports:
    {{- if $proxy.ports }}
    {{- toYaml $proxy.ports | nindent 4 }}
    {{- else }}
    - {name: http, containerPort: {{ include "pointsman.listenerPort" . }}}
    {{- if eq (include "pointsman.proxyType" .) "envoy" }}
    - {name: metrics-19001, containerPort: 19001}
    {{- else }}
    - {name: metrics-15020, containerPort: 15020}
    - {name: readiness-15021, containerPort: 15021}
    {{- end }}
    {{- end }}
  {{- with pick $proxy "livenessProbe" "readinessProbe" "startupProbe" "securityContext" "resources" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  volumeMounts:
    {{- if not (include "pointsman.proxyMountsConfig" .) }}
    - {name: proxy-config, mountPath: {{ include "pointsman.proxyConfigPath" . }}, readOnly: true}
    {{- end }}
    {{- with $proxy.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "pointsman.proxyVolumes" -}}
{{- $proxy := include "pointsman.proxy" . | fromYaml -}}
{{- if not (include "pointsman.proxyMountsConfig" .) }}
- name: proxy-config
  configMap:
    name: {{ include "pointsman.proxyConfigMapName" . }}
{{- end }}
{{- with $proxy.volumes }}
{{ tpl (toYaml .) $ }}
{{- end }}
{{- end -}}

{{- define "pointsman.proxyWorkload" -}}
{{- if include "pointsman.proxyIsService" . }}
---
apiVersion: apps/v1
kind: Deployment
{{ include "pointsman.metadata" (list . (include "pointsman.proxyName" .)) }}
    {{- include "pointsman.proxySelector" . | nindent 4 }}
spec:
  replicas: {{ .Values.router.proxy.replicas | default 2 | int }}
  selector:
    matchLabels:
      {{- include "pointsman.proxySelector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "pointsman.labels" . | nindent 8 }}
        {{- include "pointsman.proxySelector" . | nindent 8 }}
      annotations:
        # The proxy reads its configuration once.
        checksum/proxy-config: {{ include "pointsman.proxyConfigMap" . | sha256sum }}
    spec:
      automountServiceAccountToken: false
      containers:
        {{- include "pointsman.proxyContainer" . | nindent 8 }}
      volumes:
        {{- include "pointsman.proxyVolumes" . | trim | nindent 8 }}
---
apiVersion: v1
kind: Service
{{ include "pointsman.metadata" (list . (include "pointsman.proxyName" .)) }}
    {{- include "pointsman.proxySelector" . | nindent 4 }}
spec:
  type: ClusterIP
  selector:
    {{- include "pointsman.proxySelector" . | nindent 4 }}
  ports:
    {{- toYaml .Values.router.extraServicePorts | nindent 4 }}
{{- end }}
{{- end -}}

{{/* The model servers by name, for requests that pass without the picker. */}}
{{- define "pointsman.modelServersService" -}}
{{- if and .Values.router.proxy.enabled (eq (include "pointsman.proxyType" .) "envoy") (include "pointsman.failOpen" .) }}
---
apiVersion: v1
kind: Service
{{ include "pointsman.metadata" (list . (include "pointsman.modelServersName" .)) }}
spec:
  type: ClusterIP
  clusterIP: None
  selector:
    {{- range $key, $value := .Values.router.modelServers.matchLabels }}
    {{ $key }}: {{ $value | toString | quote }}
    {{- end }}
  ports:
    - name: model-server
      port: {{ include "pointsman.targetPorts" . | splitList "," | first }}
{{- end }}
{{- end -}}
