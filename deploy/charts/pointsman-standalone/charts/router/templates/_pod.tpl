{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
The pod of the picker.
*/}}

{{- define "pointsman.podTemplate" -}}
{{- $epp := .Values.router.epp -}}
metadata:
  labels:
    {{- include "pointsman.selector" . | nindent 4 }}
    {{- include "pointsman.modeLabel" . | nindent 4 }}
  {{- with $epp.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "pointsman.name" . }}
  # Longer than --drain-timeout, so that open streams finish.
  terminationGracePeriodSeconds: 130
  {{- with $epp.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if and .Values.router.tokenizer.enabled .Values.router.tokenizer.initContainers }}
  initContainers:
    {{- toYaml .Values.router.tokenizer.initContainers | nindent 4 }}
  {{- end }}
  containers:
    {{- include "pointsman.container" . | nindent 4 }}
    {{- if include "pointsman.proxyIsSidecar" . }}
    {{- include "pointsman.proxyContainer" . | nindent 4 }}
    {{- end }}
    {{- if .Values.router.tokenizer.enabled }}
    {{- include "pointsman.tokenizerContainer" . | nindent 4 }}
    {{- end }}
    {{- if .Values.router.latencyPredictor.enabled }}
    {{- include "pointsman.predictorContainers" . | nindent 4 }}
    {{- end }}
  volumes:
    - name: plugins-config-volume
      configMap:
        name: {{ include "pointsman.name" . }}
    {{- with $epp.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if include "pointsman.proxyIsSidecar" . }}
    {{- include "pointsman.proxyVolumes" . | trim | nindent 4 }}
    {{- end }}
    {{- if .Values.router.tokenizer.enabled }}
    {{- include "pointsman.tokenizerVolumes" . | nindent 4 }}
    {{- end }}
    {{- if .Values.router.latencyPredictor.enabled }}
    {{- include "pointsman.predictorVolumes" . | nindent 4 }}
    {{- end }}
  {{- with $epp.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $epp.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "pointsman.container" -}}
{{- $epp := .Values.router.epp -}}
- name: epp
  image: {{ include "pointsman.image" . | quote }}
  imagePullPolicy: {{ $epp.image.pullPolicy | default "IfNotPresent" }}
  args:
    {{- include "pointsman.arguments" . | trim | nindent 4 }}
  ports:
    - {name: grpc, containerPort: {{ include "pointsman.grpcPort" . }}}
    - {name: grpc-health, containerPort: {{ include "pointsman.healthPort" . }}}
    - {name: metrics, containerPort: {{ include "pointsman.metricsPort" . }}}
    {{- with include "pointsman.poolContainerPorts" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $epp.extraContainerPorts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  # Answers as long as the process lives: a pool that is empty or a replica that stands by is no reason for a restart.
  livenessProbe:
    grpc: {port: {{ include "pointsman.healthPort" . }}, service: liveness}
    initialDelaySeconds: 5
    periodSeconds: 10
  readinessProbe:
    grpc: {port: {{ include "pointsman.healthPort" . }}, service: readiness}
    periodSeconds: 2
  env:
    - name: NAMESPACE
      valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    {{- if .Values.router.latencyPredictor.enabled }}
    {{- include "pointsman.predictorEnvironment" . | nindent 4 }}
    {{- end }}
    {{- if .Values.router.tracing.enabled }}
    {{- include "pointsman.tracingEnvironment" .Values.router.tracing | nindent 4 }}
    {{- end }}
    {{- with include "pointsman.environment" $epp.env | trim }}
    {{- . | nindent 4 }}
    {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  resources:
    {{- toYaml $epp.resources | nindent 4 }}
  volumeMounts:
    - {name: plugins-config-volume, mountPath: /config, readOnly: true}
    {{- with $epp.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "pointsman.tracingEnvironment" -}}
- name: OTEL_SERVICE_NAME
  value: llm-d-router/epp
- name: OTEL_TRACES_EXPORTER
  value: otlp
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .otelExporterEndpoint | quote }}
- name: OTEL_TRACES_SAMPLER
  value: {{ .sampling.sampler | quote }}
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ .sampling.samplerArg | quote }}
- name: OTEL_RESOURCE_ATTRIBUTES_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: OTEL_RESOURCE_ATTRIBUTES_POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
# Kubernetes fills in variables that stand before this one.
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name=$(NAMESPACE),k8s.node.name=$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME),k8s.pod.name=$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)
{{- end -}}
