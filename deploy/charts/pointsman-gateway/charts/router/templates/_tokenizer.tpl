{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
vLLM's render server beside the picker, for the token-producer plugin.
*/}}

{{- define "pointsman.tokenizerContainer" -}}
{{- $tokenizer := .Values.router.tokenizer -}}
{{- $port := $tokenizer.port | default 8000 | int -}}
{{- $defaults := list $tokenizer.modelName (printf "--port=%d" $port) -}}
- name: vllm-render
  image: {{ include "pointsman.imageName" $tokenizer.image }}
  imagePullPolicy: {{ $tokenizer.image.pullPolicy | default "IfNotPresent" }}
  command: {{ $tokenizer.command | default (list "vllm" "launch" "render") | toJson }}
  args: {{ concat ($tokenizer.args | default $defaults) ($tokenizer.extraArgs | default list) | toJson }}
  ports:
    - {name: render-http, containerPort: {{ $port }}}
  {{- with pick $tokenizer "readinessProbe" "resources" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with include "pointsman.environment" $tokenizer.env | trim }}
  env:
    {{- . | nindent 4 }}
  {{- end }}
  volumeMounts:
    - {name: model-cache, mountPath: /root/.cache/huggingface}
    {{- with $tokenizer.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "pointsman.tokenizerVolumes" -}}
- name: model-cache
  emptyDir: {}
{{- with .Values.router.tokenizer.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
