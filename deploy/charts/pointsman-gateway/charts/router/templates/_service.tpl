{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
The Service of the picker; with preferred backends (GKE) one for each pod.
*/}}

{{/* Pods with preferred backends: a YAML list of {pod, service, policy, preferred}. */}}
{{- define "pointsman.backends" -}}
{{- $name := include "pointsman.name" . -}}
{{- $given := .Values.provider.gke.preferredBackends -}}
{{- $preferred := $given.preferredReplicas | default 1 | int -}}
{{- $standby := $given.defaultReplicas | default 1 | int -}}
{{- $backends := list -}}
{{- range $index := until (int (add $preferred $standby)) -}}
{{- $isPreferred := lt $index $preferred -}}
{{- $suffix := $isPreferred | ternary (printf "-preferred-%d" $index) (printf "-backup-%d" (sub $index $preferred)) -}}
{{- if eq $index 0 -}}{{- $suffix = "" -}}{{- else if eq $index $preferred -}}{{- $suffix = "-backup" -}}{{- end -}}
{{- $backends = append $backends (dict
  "pod" (printf "%s-%d" $name $index)
  "service" (printf "%s%s" $name $suffix)
  "policy" (printf "%s%s" $.Release.Name $suffix)
  "preferred" $isPreferred) -}}
{{- end -}}
{{- toYaml $backends -}}
{{- end -}}

{{- define "pointsman.service" -}}
{{- if include "pointsman.preferredBackends" . }}
{{- range include "pointsman.backends" . | fromYamlArray }}
---
apiVersion: v1
kind: Service
{{ include "pointsman.metadata" (list $ .service) }}
  annotations:
    cloud.google.com/neg: '{"exposed_ports":{"{{ $.Values.router.epp.extProcPort | int }}":{}}}'
spec:
  type: ClusterIP
  selector:
    statefulset.kubernetes.io/pod-name: {{ .pod }}
  ports:
    {{- include "pointsman.servicePorts" $ | nindent 4 }}
{{- end }}
{{- else }}
---
apiVersion: v1
kind: Service
{{ include "pointsman.metadata" (list . (include "pointsman.name" .)) }}
spec:
  type: ClusterIP
  selector:
    {{- include "pointsman.selector" . | nindent 4 }}
  ports:
    {{- include "pointsman.servicePorts" . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "pointsman.servicePorts" -}}
- name: grpc-ext-proc
  protocol: TCP
  port: {{ .Values.router.epp.extProcPort | int }}
  targetPort: grpc
  appProtocol: kubernetes.io/h2c
- name: http-metrics
  protocol: TCP
  port: {{ .Values.router.metricsPort | default 9090 | int }}
  targetPort: metrics
{{- with include "pointsman.poolServicePorts" . | trim }}
{{ . }}
{{- end }}
{{- if and .Values.router.extraServicePorts (not (include "pointsman.proxyIsService" .)) }}
{{ toYaml .Values.router.extraServicePorts }}
{{- end }}
{{- end -}}
