{{/* What pods of the release have in common. */}}

{{/* (list $ component) -> the values of `pods` for it, as YAML. Key by key: an empty one of its own wins, too. */}}
{{- define "namesrv.podValues" -}}
{{- $root := index . 0 -}}
{{- $pods := deepCopy $root.Values.pods -}}
{{- range $key, $value := dig (index . 1) "pods" dict $root.Values.AsMap -}}
{{- $_ := set $pods $key $value -}}
{{- end -}}
{{- toYaml $pods -}}
{{- end }}

{{/* metadata of a pod: (list $ component) */}}
{{- define "namesrv.podMetadata" -}}
{{- $pods := include "namesrv.podValues" . | fromYaml -}}
{{- with $pods.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
labels:
  {{- include "namesrv.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
  {{- range (list (index . 0).Values.commonLabels $pods.labels) }}
  {{- with . }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
{{- end }}

{{/* Where a pod runs, and as which user: (list $ component) */}}
{{- define "namesrv.podSpec" -}}
{{- $root := index . 0 -}}
{{- $pods := include "namesrv.podValues" . | fromYaml -}}
automountServiceAccountToken: false
serviceAccountName: {{ include "namesrv.serviceAccountName" $root }}
enableServiceLinks: false # a Service called mqns-http would make a variable MQNS_HTTP_PORT, which is an option
{{- include "namesrv.pullSecrets" $root }}
{{- include "namesrv.placement" . }}
securityContext:
  {{- include "namesrv.podSecurity" 10001 | nindent 2 }}
{{- end }}

{{- define "namesrv.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ . | quote }}}
  {{- end }}
{{- end }}
{{- end }}

{{/* Which nodes: (list $ component) */}}
{{- define "namesrv.placement" -}}
{{- $pods := include "namesrv.podValues" . | fromYaml -}}
{{- $selector := include "namesrv.selector" . | fromYaml -}}
{{- with $pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $pods.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pods.topologySpread }}
topologySpreadConstraints:
  {{- range . }}
  - {{ toYaml . | nindent 4 | trim }}
    labelSelector:
      matchLabels:
        {{- toYaml $selector | nindent 8 }}
    matchLabelKeys: [pod-template-hash] # old and new pods of a rollout are spread apart
  {{- end }}
{{- end }}
{{- end }}

{{/* What PodSecurity `restricted` asks for, of the pod with this user */}}
{{- define "namesrv.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "namesrv.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* One container of the server's image: (list $ component words), words being its command */}}
{{- define "namesrv.container" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $pods := include "namesrv.podValues" (list $root $component) | fromYaml -}}
name: {{ $component }}
image: {{ include "namesrv.image" (list $root $root.Values.image) | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
command: {{ index . 2 | toJson }}
env:
  {{- include "namesrv.env" $root | nindent 2 }}
  {{- if has $component (list "remoting" "http") }}
  {{- with include "namesrv.accessEnv" $root }}{{ . | trim | nindent 2 }}{{ end }}
  {{- end }}
  - {name: PROMETHEUS_MULTIPROC_DIR, value: /metrics}
  {{- if eq $component "http" }}
  - {name: MQNS_DISCOVERY_ADDRESS, value: {{ include "namesrv.discoveryAddress" $root | quote }}}
  {{- end }}
  {{- if eq $component "remoting" }}
  - {name: MQNS_ADVERTISE_ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  {{- end }}
  {{- if has $component (list "jobs" "scheduler") }}
  - {name: MQNS_BEAT_FILE, value: /tmp/beat}
  {{- end }}
  {{- $tls := $root.Values.tls }}
  {{- $asked := and (eq $tls.mode "enforcing") (eq $tls.clientAuth "require") }}
  {{- if and (eq $component "scheduler") (not $asked) (include "namesrv.admitsPods" (list $root "accessRead")) }}
  - {name: MQNS_CHECK_ADDRESS, value: "{{ include "namesrv.name" (list $root "remoting") }}:{{ $root.Values.remoting.service.port }}"}
  {{- end }}
  {{- with $pods.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources:
  {{- toYaml (index $root.Values $component).resources | nindent 2 }}
securityContext:
  {{- include "namesrv.containerSecurity" . | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: metrics, mountPath: /metrics}
  {{- include "namesrv.redisTlsMounts" $root | nindent 2 | trimSuffix "\n  " }}
  {{- if has $component (list "remoting" "http") }}
  {{- with include "namesrv.accessMount" $root }}{{ . | trim | nindent 2 }}{{ end }}
  {{- end }}
  {{- if eq $component "remoting" }}
  {{- with include "namesrv.tlsMounts" $root }}{{ . | trim | nindent 2 }}{{ end }}
  {{- end }}
{{- end }}

{{/* What serves /metrics of a pod without an HTTP side: it reads what the other container counts. */}}
{{- define "namesrv.exporter" -}}
name: metrics
image: {{ include "namesrv.image" (list . .Values.image) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [gunicorn, -c, "python:mqnamesrv.gunicorn_metrics", "api.exporter:app"]
env:
  - {name: PROMETHEUS_MULTIPROC_DIR, value: /metrics}
  {{- include "namesrv.httpEnv" . | nindent 2 }}
  {{- with include "namesrv.optionsEnv" (list . (pick .Values.options "accessProfile" "accessMode" "accessMetrics" "accessNetworks" "httpTrustedProxies")) }}{{ . | trim | nindent 2 }}{{ end }}
  {{- with include "namesrv.accessEnv" . }}{{ . | trim | nindent 2 }}{{ end }}
ports:
  - {name: metrics, containerPort: 9464}
resources:
  {{- toYaml .Values.metrics.resources | nindent 2 }}
securityContext:
  {{- include "namesrv.containerSecurity" . | nindent 2 }}
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: metrics, mountPath: /metrics}
  {{- with include "namesrv.accessMount" . }}{{ . | trim | nindent 2 }}{{ end }}
{{- end }}

{{/* (list $ component) */}}
{{- define "namesrv.volumes" -}}
{{- $root := index . 0 -}}
- {name: tmp, emptyDir: {}}
- {name: metrics, emptyDir: {medium: Memory, sizeLimit: 64Mi}} # what processes count; some 10 MB
{{- include "namesrv.redisTlsVolumes" $root }}
{{- if or $root.Values.metrics.enabled (has (index . 1) (list "remoting" "http")) }}
{{- include "namesrv.accessVolume" $root }}
{{- end }}
{{- if eq (index . 1) "remoting" }}
{{- include "namesrv.tlsVolumes" $root }}
{{- end }}
{{- end }}

{{/* Options of the name server as variables; files/options.yaml says how each is called there. */}}
{{- define "namesrv.env" -}}
{{- include "namesrv.redisEnv" . }}
{{- include "namesrv.tlsEnv" . }}
{{- include "namesrv.proxyEnv" . }}
{{ include "namesrv.httpEnv" . }}
{{- include "namesrv.optionsEnv" (list . (omit .Values.options "httpAllowedHosts" "discoveryAddress")) }}
{{- end }}

{{/* What clients learn whose only setting is the HTTP side's address: the Service, by any name that pods look up. */}}
{{- define "namesrv.discoveryAddress" -}}
{{- $service := printf "%s:%v" (include "namesrv.remotingHost" .) .Values.remoting.service.port -}}
{{- default $service .Values.options.discoveryAddress -}}
{{- end }}

{{/* (list $ options) */}}
{{- define "namesrv.optionsEnv" -}}
{{- $variables := (index . 0).Files.Get "files/options.yaml" | fromYaml -}}
{{- range $option, $value := index . 1 }}
- {name: {{ get $variables $option }}, value: {{ include "namesrv.text" $value | quote }}}
{{- end }}
{{- end }}

{{/* Where the HTTP side and the exporter listen, and by which names they are asked: those of the Service, and more. */}}
{{- define "namesrv.httpEnv" -}}
{{- $name := include "namesrv.name" (list . "http") -}}
{{- $inside := printf "%s.%s" $name .Release.Namespace -}}
{{- $names := list $name $inside (printf "%s.svc" $inside) (printf "%s.svc.%s" $inside .Values.clusterDomain) -}}
{{- with .Values.options.httpAllowedHosts }}{{ $names = append $names . }}{{ end -}}
- {name: MQNS_HTTP_BIND_ADDRESS, value: "0.0.0.0"}
- {name: MQNS_HTTP_ALLOWED_HOSTS, value: {{ join "," $names | quote }}}
{{- end }}

{{/* A value as text: numbers of YAML are floating here, and large ones would come out as 1e+06. */}}
{{- define "namesrv.text" -}}
{{- if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{- define "namesrv.tlsEnv" -}}
{{- $tls := .Values.tls }}
- {name: MQNS_TLS_SERVER_MODE, value: {{ $tls.mode }}}
{{- with $tls.existingSecret }}
- {name: MQNS_TLS_TEST_MODE_ENABLE, value: "false"}
- {name: MQNS_TLS_SERVER_CERT_PATH, value: /etc/namesrv-tls/tls.crt}
- {name: MQNS_TLS_SERVER_KEY_PATH, value: /etc/namesrv-tls/tls.key}
{{- with $tls.keyPasswordKey }}
{{ include "namesrv.secretEnv" (list "MQNS_TLS_SERVER_KEY_PASSWORD" $tls.existingSecret . false) }}
{{- end }}
{{- if ne $tls.clientAuth "none" }}
- {name: MQNS_TLS_SERVER_NEED_CLIENT_AUTH, value: {{ $tls.clientAuth }}}
- {name: MQNS_TLS_SERVER_AUTH_CLIENT, value: "true"}
- {name: MQNS_TLS_SERVER_TRUST_CERT_PATH, value: {{ ternary "/etc/namesrv-client-ca" "/etc/namesrv-tls" (not (empty $tls.clientCaSecret)) }}/ca.crt}
{{- end }}
{{- end }}
{{- end }}

{{- define "namesrv.tlsMounts" -}}
{{- with .Values.tls }}
{{- if .existingSecret }}
- {name: tls, mountPath: /etc/namesrv-tls, readOnly: true}
{{- end }}
{{- if .clientCaSecret }}
- {name: client-ca, mountPath: /etc/namesrv-client-ca, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "namesrv.tlsVolumes" -}}
{{- with .Values.tls }}
{{- with .existingSecret }}
- {name: tls, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- with .clientCaSecret }}
- {name: client-ca, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- end }}
{{- end }}
