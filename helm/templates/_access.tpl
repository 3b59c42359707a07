{{/* Access: the Secret of the access file, and what the rules say of the chart's own callers. */}}

{{- define "namesrv.accessFolder" -}}
/etc/namesrv-access
{{- end }}

{{/* Name of the Secret of the access file; empty where there is none. */}}
{{- define "namesrv.accessSecret" -}}
{{- if .Values.access.files -}}
{{- include "namesrv.name" (list . "access") -}}
{{- else -}}
{{- .Values.access.existingSecret -}}
{{- end -}}
{{- end }}

{{/* For containers that answer callers. A Secret that changes reaches its folder by itself: no pod restarts. */}}
{{- define "namesrv.accessEnv" -}}
{{- if include "namesrv.accessSecret" . }}
- {name: MQNS_ACCESS_FILE, value: {{ printf "%s/%s" (include "namesrv.accessFolder" .) .Values.access.fileKey | quote }}}
{{- end }}
{{- end }}

{{- define "namesrv.accessMount" -}}
{{- if include "namesrv.accessSecret" . }}
- {name: access, mountPath: {{ include "namesrv.accessFolder" . }}, readOnly: true}
{{- end }}
{{- end }}

{{/* Group 10001 reads it, and no other user: else the name server does not start. */}}
{{- define "namesrv.accessVolume" -}}
{{- with include "namesrv.accessSecret" . }}
- {name: access, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- end }}

{{/* A balancer whose PROXY headers are believed, and whose own address gives no rights: beside loopback, as by default. */}}
{{- define "namesrv.proxyEnv" -}}
{{- with .Values.remoting.service.proxyTrustedCidrs }}
- {name: MQNS_PROXY_TRUSTED_CIDRS, value: {{ join "," (concat (list "127.0.0.0/8" "::1/128") .) | quote }}}
- {name: MQNS_PROXY_REQUIRED, value: "true"}
{{- end }}
{{- end }}

{{/* (list $ option) -> `true` if a pod's address alone may meet that rule of the options, as `net` does in each profile */}}
{{- define "namesrv.admitsPods" -}}
{{- $values := (index . 0).Values -}}
{{- $tls := ternary "|tls" "" (eq $values.tls.mode "enforcing") -}}
{{- range regexSplit "[[:space:],]+" (get $values.options (index . 1) | default "net") -1 -}}
{{- if regexMatch (printf "^((open|remoting|net|cidr:[^+]+%s)([+]|$))+$" $tls) . -}}true{{- end -}}
{{- end -}}
{{- end }}

{{/* `true` while the profile `secure` is enforced, and its rule for brokers is the profile's own */}}
{{- define "namesrv.securesBrokers" -}}
{{- with .Values.options -}}
{{- if and (eq (default "" .accessProfile) "secure") (ne (default "" .accessMode) "observe") (not .accessBroker) -}}true{{- end -}}
{{- end -}}
{{- end }}
