{{/* Where Redis is, and how pods log in there: `redis` and `jobQueue.redis` of the values have the same keys. */}}

{{/* (list $ redis folder-of-its-TLS-files) -> its URL, without credentials */}}
{{- define "namesrv.redisUrl" -}}
{{- $root := index . 0 -}}
{{- $redis := index . 1 -}}
{{- $folder := index . 2 -}}
{{- $scheme := ternary "rediss" "redis" $redis.tls.enabled -}}
{{- $hosts := join "," $redis.hosts -}}
{{- if eq $redis.kind "embedded" -}}
redis://{{ include "namesrv.name" (list $root "redis") }}:6379/{{ int $redis.database }}
{{- else if eq $redis.kind "sentinel" -}}
{{ $scheme }}+sentinel://{{ $hosts }}/{{ $redis.sentinelMaster }}/{{ int $redis.database }}
{{- else if eq $redis.kind "cluster" -}}
{{ $scheme }}+cluster://{{ $hosts }}
{{- else -}}
{{ $scheme }}://{{ $hosts }}/{{ int $redis.database }}
{{- end -}}
{{- if and $redis.tls.enabled $redis.tls.existingSecret -}}
?ssl_ca_certs={{ $folder }}/ca.crt
{{- if $redis.tls.clientCertificate -}}
&ssl_certfile={{ $folder }}/tls.crt&ssl_keyfile={{ $folder }}/tls.key
{{- end -}}
{{- end -}}
{{- end }}

{{/* (list variable secret key optional) */}}
{{- define "namesrv.secretEnv" -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef: {name: {{ index . 1 | quote }}, key: {{ index . 2 | quote }}{{ if index . 3 }}, optional: true{{ end }}}
{{- end }}

{{- define "namesrv.redisEnv" -}}
{{- $redis := .Values.redis -}}
{{- $queue := .Values.jobQueue.redis -}}
- {name: MQNS_REDIS_URL, value: {{ include "namesrv.redisUrl" (list . $redis "/etc/redis-tls") | quote }}}
{{- with $redis.existingSecret }}
{{- $keys := $redis.secretKeys }}
{{ include "namesrv.secretEnv" (list "MQNS_REDIS_USERNAME" . $keys.username true) }}
{{ include "namesrv.secretEnv" (list "MQNS_REDIS_PASSWORD" . $keys.password false) }}
{{- if or (eq $redis.kind "sentinel") (eq $queue.kind "sentinel") }}
{{ include "namesrv.secretEnv" (list "MQNS_REDIS_SENTINEL_USERNAME" . $keys.sentinelUsername true) }}
{{ include "namesrv.secretEnv" (list "MQNS_REDIS_SENTINEL_PASSWORD" . $keys.sentinelPassword true) }}
{{- end }}
{{- end }}
{{- if $queue.hosts }}
- {name: MQNS_RQ_REDIS_URL, value: {{ include "namesrv.redisUrl" (list . $queue "/etc/redis-queue-tls") | quote }}}
{{- with $queue.existingSecret }}
{{ include "namesrv.secretEnv" (list "MQNS_RQ_REDIS_USERNAME" . $queue.secretKeys.username true) }}
{{ include "namesrv.secretEnv" (list "MQNS_RQ_REDIS_PASSWORD" . $queue.secretKeys.password false) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Names of the volumes of TLS files that pods need to reach Redis, and their folders: name secret folder */}}
{{- define "namesrv.redisTlsVolumes" -}}
{{- with .Values.redis }}{{ if and .tls.enabled .tls.existingSecret }}
- {name: redis-tls, secret: {secretName: {{ .tls.existingSecret | quote }}, defaultMode: 0440}}
{{- end }}{{ end }}
{{- with .Values.jobQueue.redis }}{{ if and .hosts .tls.enabled .tls.existingSecret }}
- {name: redis-queue-tls, secret: {secretName: {{ .tls.existingSecret | quote }}, defaultMode: 0440}}
{{- end }}{{ end }}
{{- end }}

{{- define "namesrv.redisTlsMounts" -}}
{{- with .Values.redis }}{{ if and .tls.enabled .tls.existingSecret }}
- {name: redis-tls, mountPath: /etc/redis-tls, readOnly: true}
{{- end }}{{ end }}
{{- with .Values.jobQueue.redis }}{{ if and .hosts .tls.enabled .tls.existingSecret }}
- {name: redis-queue-tls, mountPath: /etc/redis-queue-tls, readOnly: true}
{{- end }}{{ end }}
{{- end }}
