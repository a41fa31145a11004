{{/*
Checks of the proxy.
*/}}

{{- define "standalone.checks" -}}
{{- $proxy := .Values.router.proxy -}}
{{- include "pointsman.checkChoice" (list "router.proxy.mode" ($proxy.mode | default "sidecar") (list "sidecar" "service")) -}}
{{- include "pointsman.checkChoice" (list "router.proxy.proxyType" ($proxy.proxyType | default "envoy") (list "envoy" "agentgateway")) -}}
{{- if and (eq (include "pointsman.proxyMode" .) "service") (not $proxy.enabled) -}}
{{- fail "router.proxy.mode: there is no proxy to serve; set router.proxy.enabled=true" -}}
{{- end -}}
{{- if $proxy.enabled -}}
{{- $listeners := 0 -}}
{{- range .Values.router.extraServicePorts -}}
{{- if eq (toString .name) "http" -}}{{- $listeners = add1 $listeners | int -}}{{- end -}}
{{- end -}}
{{- if ne $listeners 1 -}}
{{- fail (printf "router.extraServicePorts: exactly one port named \"http\" is needed, the proxy's; there are %d" $listeners) -}}
{{- end -}}
{{- if eq (include "pointsman.proxyType" .) "agentgateway" -}}
{{- include "standalone.checks.agentgateway" . -}}
{{- else -}}
{{- include "standalone.checks.destinations" . -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Envoy connects here to whatever one address the picker names. Profiles that encode media may name lists: those go into a
header of their own.
*/}}
{{- define "standalone.checks.destinations" -}}
{{- $name := .Values.router.epp.pluginsConfigFile -}}
{{- $text := include "pointsman.ownConfiguration" . -}}
{{- $key := empty .Values.router.epp.pluginsConfig | ternary (printf "router.epp.pluginsCustomConfig.%s" $name) "router.epp.pluginsConfig" -}}
{{- if and (regexMatch "maxNumOfEndpoints[\"']?: *([2-9]|[1-9][0-9])" $text) (not (contains "encode" $text)) -}}
{{- fail (printf "%s: maxNumOfEndpoints above 1 names lists of destinations, and the proxy of this chart takes one address: set it to 1" $key) -}}
{{- end -}}
{{- end -}}

{{- define "standalone.checks.agentgateway" -}}
{{- if hasKey .Values.router.proxy "agentgateway" -}}
{{- fail "router.proxy.agentgateway: this key is no longer read; the backend is named after router.modelServers.matchLabels.app" -}}
{{- end -}}
{{- if .Values.router.inferencePool.create -}}
{{- fail "router.inferencePool.create: agentgateway stands alone without a pool; set router.inferencePool.create=false" -}}
{{- end -}}
{{- if include "pointsman.flagIsOn" (list . "secure-serving") -}}
{{- fail "router.epp.flags.secure-serving: agentgateway asks the picker in plain text; set it to false or leave it out" -}}
{{- end -}}
{{- end -}}
