{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
llm-d's latency predictor beside the picker: one server that trains, some that predict.
*/}}

{{/* Ports of the prediction servers, separated by commas. */}}
{{- define "pointsman.predictionPorts" -}}
{{- $servers := .Values.router.latencyPredictor.predictionServers -}}
{{- $start := $servers.startPort | int -}}
{{- join "," (untilStep $start (add $start $servers.count | int) 1) -}}
{{- end -}}

{{- define "pointsman.trainingURL" -}}
{{- printf "http://localhost:%d" (.Values.router.latencyPredictor.trainingServer.port | int) -}}
{{- end -}}

{{- define "pointsman.predictorEnvironment" -}}
{{- $urls := list -}}
{{- range include "pointsman.predictionPorts" . | splitList "," | compact -}}
{{- $urls = append $urls (printf "http://localhost:%s" .) -}}
{{- end -}}
- name: PREDICTION_SERVER_URL
  value: {{ join "," $urls | quote }}
- name: TRAINING_SERVER_URL
  value: {{ include "pointsman.trainingURL" . }}
{{- include "pointsman.environment" (.Values.router.latencyPredictor.eppEnv | default dict) }}
{{- end -}}

{{- define "pointsman.predictorContainers" -}}
{{- $name := include "pointsman.name" . -}}
{{- $training := .Values.router.latencyPredictor.trainingServer -}}
{{- $prediction := .Values.router.latencyPredictor.predictionServers -}}
- name: training-server
  image: {{ include "pointsman.imageName" $training.image }}
  imagePullPolicy: {{ $training.image.pullPolicy | default "IfNotPresent" }}
  ports:
    - {name: training-port, containerPort: {{ $training.port | int }}}
  {{- with pick $training "livenessProbe" "readinessProbe" "resources" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  envFrom:
    - configMapRef: {name: {{ $name }}-latency-predictor-training}
  env:
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    - name: SERVER_TYPE
      value: training
  volumeMounts:
    - {name: training-server-storage, mountPath: /models}
{{- range $index, $port := include "pointsman.predictionPorts" . | splitList "," | compact }}
- name: prediction-server-{{ add1 $index }}
  image: {{ include "pointsman.imageName" $prediction.image }}
  imagePullPolicy: {{ $prediction.image.pullPolicy | default "IfNotPresent" }}
  command: [uvicorn]
  args: [llm_d_latency_predictor.prediction_server:app, --host, 0.0.0.0, --port, {{ $port | quote }}]
  ports:
    - {name: predict-port-{{ add1 $index }}, containerPort: {{ $port }}}
  {{- range $probe := list "livenessProbe" "readinessProbe" }}
  {{- with get $prediction $probe }}
  {{ $probe }}:
    {{- toYaml (mergeOverwrite (deepCopy .) (dict "httpGet" (dict "port" (int $port)))) | nindent 4 }}
  {{- end }}
  {{- end }}
  resources:
    {{- toYaml $prediction.resources | nindent 4 }}
  envFrom:
    - configMapRef: {name: {{ $name }}-latency-predictor-prediction}
  env:
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    - name: PREDICT_PORT
      value: {{ $port | quote }}
    - name: SERVER_TYPE
      value: prediction-{{ add1 $index }}
    - name: TRAINING_SERVER_URL
      value: {{ include "pointsman.trainingURL" $ }}
  volumeMounts:
    - {name: prediction-server-{{ add1 $index }}-storage, mountPath: /server_models}
{{- end }}
{{- end -}}

{{- define "pointsman.predictorVolumes" -}}
- name: training-server-storage
  emptyDir: {sizeLimit: {{ .Values.router.latencyPredictor.trainingServer.volumeSize }}}
{{- range $index, $_ := include "pointsman.predictionPorts" . | splitList "," | compact }}
- name: prediction-server-{{ add1 $index }}-storage
  emptyDir: {sizeLimit: {{ $.Values.router.latencyPredictor.predictionServers.volumeSize }}}
{{- end }}
{{- end -}}

{{- define "pointsman.predictorConfigMaps" -}}
{{- if .Values.router.latencyPredictor.enabled }}
{{- $parts := dict "training" .Values.router.latencyPredictor.trainingServer "prediction" .Values.router.latencyPredictor.predictionServers }}
{{- range $part, $server := $parts }}
---
apiVersion: v1
kind: ConfigMap
{{ include "pointsman.metadata" (list $ (printf "%s-latency-predictor-%s" (include "pointsman.name" $) $part)) }}
data:
  {{- range $name, $value := $server.config }}
  {{ $name }}: {{ kindIs "string" $value | ternary (toString $value) (toJson $value) | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}
