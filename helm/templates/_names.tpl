{{/* Names and labels. The root of a chart is $; what belongs to a component is given as (list $ "remoting"). */}}

{{/* What all names begin with: short enough for what Kubernetes appends. Two long ones differ by a hash. */}}
{{- define "namesrv.fullname" -}}
{{- $name := default .Release.Name .Values.fullnameOverride -}}
{{- if gt (len $name) 40 -}}
{{- printf "%s-%s" (trunc 31 $name | trimSuffix "-") (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end }}

{{- define "namesrv.name" -}}
{{- printf "%s-%s" (include "namesrv.fullname" (index . 0)) (index . 1) -}}
{{- end }}

{{/* Which pods are this component's of this release; never changes, since a Deployment's selector cannot. */}}
{{- define "namesrv.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "namesrv.labels" -}}
{{- $root := index . 0 -}}
{{ include "namesrv.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: {{ $root.Chart.Name }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* metadata of an object: (list $ component) or (list $ component suffix-of-its-name) */}}
{{- define "namesrv.metadata" -}}
name: {{ include "namesrv.name" . }}{{ if gt (len .) 2 }}-{{ index . 2 }}{{ end }}
namespace: {{ (index . 0).Release.Namespace }}
labels:
  {{- include "namesrv.labels" . | nindent 2 }}
{{- end }}

{{- define "namesrv.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "namesrv.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{/* (list $ image) */}}
{{- define "namesrv.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end }}

{{/* The name by which pods of any namespace reach the remoting port. */}}
{{- define "namesrv.remotingHost" -}}
{{- printf "%s.%s.svc.%s" (include "namesrv.name" (list . "remoting")) .Release.Namespace .Values.clusterDomain -}}
{{- end }}
