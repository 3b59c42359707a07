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

{{/* (list prefix secret keys) -> the login that is in this secret, if there is one */}}
{{- define "namesrv.loginEnv" -}}
{{- with index . 1 }}
{{ include "namesrv.secretEnv" (list (print (index $ 0) "USERNAME") . (index $ 2).username true) }}
{{ include "namesrv.secretEnv" (list (print (index $ 0) "PASSWORD") . (index $ 2).password false) }}
{{- end }}
{{- end }}

{{/* (list prefix secret keys) -> the login at the Sentinels */}}
{{- define "namesrv.sentinelEnv" -}}
{{- with index . 1 }}
{{ include "namesrv.secretEnv" (list (print (index $ 0) "SENTINEL_USERNAME") . (index $ 2).sentinelUsername true) }}
{{ include "namesrv.secretEnv" (list (print (index $ 0) "SENTINEL_PASSWORD") . (index $ 2).sentinelPassword true) }}
{{- end }}
{{- end }}

{{- define "namesrv.redisEnv" -}}
{{- $redis := .Values.redis -}}
{{- $queue := .Values.jobQueue.redis -}}
{{- $login := list "MQNS_REDIS_" $redis.existingSecret $redis.secretKeys -}}
- {name: MQNS_REDIS_URL, value: {{ include "namesrv.redisUrl" (list . $redis "/etc/redis-tls") | quote }}}
{{- include "namesrv.loginEnv" $login }}
{{- if or (eq $redis.kind "sentinel") (eq $queue.kind "sentinel") }}
{{- include "namesrv.sentinelEnv" $login }}
{{- end }}
{{- if $queue.hosts }}
- {name: MQNS_RQ_REDIS_URL, value: {{ include "namesrv.redisUrl" (list . $queue "/etc/redis-queue-tls") | quote }}}
{{- include "namesrv.loginEnv" (list "MQNS_RQ_REDIS_" $queue.existingSecret $queue.secretKeys) }}
{{- end }}
{{- end }}

{{/* Volumes of the TLS files that pods need to reach Redis, and their folders: name secret folder */}}
{{- define "namesrv.redisTlsVolume" -}}
{{- with .Values.redis.tls }}{{ if and .enabled .existingSecret }}
- {name: redis-tls, secret: {secretName: {{ .existingSecret | quote }}, defaultMode: 0440}}
{{- end }}{{ end }}
{{- end }}

{{- define "namesrv.redisTlsMount" -}}
{{- with .Values.redis.tls }}{{ if and .enabled .existingSecret }}
- {name: redis-tls, mountPath: /etc/redis-tls, readOnly: true}
{{- end }}{{ end }}
{{- end }}

{{- define "namesrv.redisTlsVolumes" -}}
{{- include "namesrv.redisTlsVolume" . }}
{{- with .Values.jobQueue.redis }}{{ if and .hosts .tls.enabled .tls.existingSecret }}
- {name: redis-queue-tls, secret: {secretName: {{ .tls.existingSecret | quote }}, defaultMode: 0440}}
{{- end }}{{ end }}
{{- end }}

{{- define "namesrv.redisTlsMounts" -}}
{{- include "namesrv.redisTlsMount" . }}
{{- with .Values.jobQueue.redis }}{{ if and .hosts .tls.enabled .tls.existingSecret }}
- {name: redis-queue-tls, mountPath: /etc/redis-queue-tls, readOnly: true}
{{- end }}{{ end }}
{{- end }}
