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
{{- end -}}
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
