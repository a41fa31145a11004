{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
Configuration of agentgateway in front of the picker: one route to the model servers, chosen by the picker.
*/}}

{{- define "pointsman.agentgatewayConfiguration" -}}
{{- $name := get .Values.router.modelServers.matchLabels "app" | default .Release.Name | toString -}}
{{- $ports := include "pointsman.targetPorts" . | splitList "," -}}
{{- $allPorts := dict -}}
{{- range $ports -}}{{- $_ := set $allPorts . (int .) -}}{{- end -}}
{{- $route := dict
  "name" "picked"
  "matches" (list (dict "path" (dict "pathPrefix" "/")))
  "backends" (list (dict
    "service" (dict "name" (printf "%s/%s" .Release.Namespace $name) "port" (first $ports | int))
    "policies" (dict "inferenceRouting" (dict
      "endpointPicker" (dict "host" (printf "%s:%s" (include "pointsman.pickerHost" .) (include "pointsman.pickerPort" .)))
      "destinationMode" "passthrough")))) -}}
{{- toYaml (dict
  "config" (dict "statsAddr" "0.0.0.0:15020" "readinessAddr" "0.0.0.0:15021")
  "binds" (list (dict
    "port" (include "pointsman.listenerPort" . | int)
    "listeners" (list (dict "name" "default" "protocol" "HTTP" "routes" (list $route)))))
  "services" (list (dict
    "name" $name "namespace" .Release.Namespace "hostname" $name "vips" list "ports" $allPorts))) -}}
{{- end -}}
