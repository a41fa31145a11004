{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
Configuration of Envoy in front of the picker; deploy/envoy explains each part.
*/}}

{{- define "pointsman.envoyConfiguration" -}}
{{- $listener := include "pointsman.listenerPort" . -}}
{{- $open := include "pointsman.failOpen" . -}}
{{- $timeouts := "timeout: 86400s, idle_timeout: 86400s" -}}
admin:
  address: { socket_address: { address: 127.0.0.1, port_value: 19000 } }

static_resources:
  listeners:
  - name: ready
    {{- include "pointsman.envoyAddress" "19001" | nindent 4 }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: ready
          route_config:
            virtual_hosts:
            - name: admin
              domains: ["*"]
              routes:
              - { match: { prefix: /stats/prometheus }, route: { cluster: admin } }
          http_filters:
          - name: envoy.filters.http.health_check
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck
              pass_through_mode: false
              headers: [{ name: ":path", string_match: { exact: /ready } }]
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }

  - name: gateway
    {{- include "pointsman.envoyAddress" $listener | nindent 4 }}
    # Body messages to the picker are at most about this large.
    per_connection_buffer_limit_bytes: 32768
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: gateway
          generate_request_id: true
          use_remote_address: true
          normalize_path: true
          merge_slashes: true
          path_with_escaped_slashes_action: UNESCAPE_AND_REDIRECT
          common_http_protocol_options:
            idle_timeout: 3600s
            headers_with_underscores_action: REJECT_REQUEST
          http2_protocol_options: { max_concurrent_streams: 100 }
          upgrade_configs: [{ upgrade_type: websocket }]
          access_log:
          # Requests that found no route or no server.
          - name: envoy.access_loggers.stdout
            filter: { response_flag_filter: { flags: [NR, UH, UF] } }
            typed_config: { "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog }
          route_config:
            virtual_hosts:
            - name: model_servers
              domains: ["*"]
              routes:
              {{- if $open }}
              # Where the picker says; without its word, any model server. The picker's answer has the route chosen again.
              - match: { prefix: /, headers: [{ name: x-gateway-destination-endpoint, present_match: true }] }
                route: { cluster: model_servers, {{ $timeouts }} }
              - match: { prefix: / }
                route: { cluster: any_model_server, {{ $timeouts }} }
              {{- else }}
              - match: { prefix: / }
                route: { cluster: model_servers, {{ $timeouts }} }
              {{- end }}
          http_filters:
          # Where a request goes is the picker's to say, never the client's.
          - name: envoy.filters.http.header_mutation
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
              mutations: { request_mutations: [{ remove: x-gateway-destination-endpoint }] }
          - name: envoy.filters.http.ext_proc
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor
              grpc_service:
                envoy_grpc: { cluster_name: ext_proc, authority: "localhost:9002" }
                timeout: 10s
              failure_mode_allow: {{ empty $open | ternary false true }}
              allow_mode_override: true
              # The picker may hold a request back in its queue; its own limits end that wait.
              message_timeout: 1000s
              processing_mode:
                request_header_mode: SEND
                request_body_mode: FULL_DUPLEX_STREAMED
                request_trailer_mode: SEND
                response_header_mode: SEND
                response_body_mode: FULL_DUPLEX_STREAMED
                response_trailer_mode: SEND
              metadata_options:
                forwarding_namespaces: { untyped: [envoy.lb, envoy.lb.subset_hint] }
                receiving_namespaces: { untyped: [envoy.lb] }
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
              suppress_envoy_headers: true

  clusters:
  - name: admin
    type: STATIC
    load_assignment:
      cluster_name: admin
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 19000 } } }

  # Connects to whatever address the picker has put into the header.
  - name: model_servers
    type: ORIGINAL_DST
    lb_policy: CLUSTER_PROVIDED
    connect_timeout: 5s
    original_dst_lb_config:
      use_http_header: true
      http_header_name: x-gateway-destination-endpoint
    typed_extension_protocol_options: &engines
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        # Shorter than the engine's own: vLLM and SGLang close a connection after 5 s without a request.
        common_http_protocol_options: { idle_timeout: 4s }
        explicit_http_config: { http_protocol_options: {} }
    circuit_breakers: &limits
      thresholds:
      - { max_connections: 40000, max_pending_requests: 40000, max_requests: 40000, max_retries: 40000 }
  {{- if $open }}

  - name: any_model_server
    type: STRICT_DNS
    lb_policy: LEAST_REQUEST
    connect_timeout: 5s
    typed_extension_protocol_options: *engines
    circuit_breakers: *limits
    load_assignment:
      cluster_name: any_model_server
      endpoints:
      - lb_endpoints:
        - endpoint:
            address:
              socket_address:
                address: {{ printf "%s.%s.svc.%s" (include "pointsman.modelServersName" .) .Release.Namespace (.Values.router.clusterDomain | default "cluster.local") }}
                port_value: {{ include "pointsman.targetPorts" . | splitList "," | first }}
  {{- end }}

  - name: ext_proc
    type: {{ eq (include "pointsman.proxyMode" .) "service" | ternary "STRICT_DNS" "STATIC" }}
    lb_policy: LEAST_REQUEST
    connect_timeout: 5s
    circuit_breakers: *limits
    {{- if $open }}
    # No healthy picker = no picker, instead of Envoy's default of trying an unhealthy one.
    common_lb_config: { healthy_panic_threshold: { value: 0 } }
    {{- end }}
    # The picker answers this on its ext_proc port with its true state.
    health_checks:
    - timeout: 2s
      interval: {{ empty $open | ternary "10s" "1s" }}
      no_traffic_interval: 1s
      unhealthy_threshold: {{ empty $open | ternary 3 1 }}
      healthy_threshold: 1
      reuse_connection: true
      grpc_health_check: { service_name: envoy.service.ext_proc.v3.ExternalProcessor }
    {{- if include "pointsman.flagIsOn" (list . "secure-serving") }}
    # The picker signs its certificate itself: encrypted, not verified.
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context: { alpn_protocols: [h2] }
    {{- end }}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config:
          http2_protocol_options: { max_concurrent_streams: 40000 }
    load_assignment:
      cluster_name: ext_proc
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: {{ include "pointsman.pickerHost" . }}, port_value: {{ include "pointsman.pickerPort" . }} } } }
{{- end -}}

{{/* Listens on a port over IPv4 and IPv6. */}}
{{- define "pointsman.envoyAddress" -}}
address: { socket_address: { address: 0.0.0.0, port_value: {{ . }} } }
additional_addresses: [{ address: { socket_address: { address: "::", port_value: {{ . }} } } }]
{{- end -}}

{{/*
Templates that an envoy.yaml written for llm-d-router's chart includes: its default text has them, and stays among the
values of a release that is upgraded with --reuse-values.
*/}}
{{- define "llm-d-router.proxy.failOpen" -}}{{- include "pointsman.failOpen" . | default "false" -}}{{- end -}}
{{- define "llm-d-router.proxy.extProcHost" -}}{{- include "pointsman.pickerHost" . -}}{{- end -}}
{{- define "llm-d-router.proxy.extProcClusterType" -}}
{{- eq (include "pointsman.proxyMode" .) "service" | ternary "STRICT_DNS" "STATIC" -}}
{{- end -}}
{{- define "llm-d-router.proxy.envoyExtProcTLSOptions" -}}
{{- if include "pointsman.flagIsOn" (list . "secure-serving") -}}
tls_options: { alpn_protocols: [h2] }
{{- end -}}
{{- end -}}
{{- define "llm-d-router.proxy.envoyExtProcTransportSocket" -}}
{{- if include "pointsman.flagIsOn" (list . "secure-serving") -}}
transport_socket:
  name: envoy.transport_sockets.tls
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
    common_tls_context: { validation_context: {} }
{{- end -}}
{{- end -}}
