{{- define "millstream.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "millstream.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "millstream.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "millstream.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "millstream.selector" -}}
app.kubernetes.io/name: {{ include "millstream.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "millstream.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "millstream.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "millstream.scheme" -}}
{{- if .Values.tls.secretName -}}HTTPS{{- else -}}HTTP{{- end -}}
{{- end -}}

{{- define "millstream.imageTag" -}}
{{- default .Chart.AppVersion .Values.image.tag -}}
{{- end -}}

{{/* Set where workers have executors in pods. */}}
{{- define "millstream.executors" -}}
{{- if and .Values.worker.executors.enabled (ne .Values.archive.url "off") -}}true{{- end -}}
{{- end -}}

{{/* What every process is told. */}}
{{- define "millstream.environment" -}}
{{- if .Values.stores.enabled }}
{{- $stores := printf "%s-stores" (include "millstream.fullname" .) }}
{{- $members := list }}
{{- range $number := until (int .Values.stores.count) }}
{{- $members = append $members (printf "%s-%d.%s:6379" $stores $number $stores) }}
{{- end }}
- name: STORE_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ .Values.existingSecret }}, key: STORE_PASSWORD}
- name: REDIS_URL
  value: redis://:$(STORE_PASSWORD)@{{ join "," $members }}/0
- name: MILLSTREAM_DURABILITY
  value: replicated
{{- else }}
- name: REDIS_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.existingSecret }}, key: REDIS_URL}
{{- end }}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.existingSecret }}, key: DATABASE_URL}
- name: MILLSTREAM_SECRET_KEYS
  valueFrom:
    secretKeyRef: {name: {{ .Values.existingSecret }}, key: MILLSTREAM_SECRET_KEYS, optional: true}
- name: MILLSTREAM_ARCHIVE_URL
  value: {{ .Values.archive.url | quote }}
- name: MILLSTREAM_SPARK_MEMORY_MB
  value: {{ .Values.worker.memoryMb | quote }}
{{- if .Values.tls.secretName }}
- name: MILLSTREAM_SSL_CERTFILE
  value: /tls/tls.crt
- name: MILLSTREAM_SSL_KEYFILE
  value: /tls/tls.key
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{/* A pod of one process. Takes (list root process arguments resources grace). */}}
{{- define "millstream.pod" -}}
{{- $root := index . 0 -}}
{{- $process := index . 1 -}}
metadata:
  labels:
    {{- include "millstream.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $process }}
  {{- with $root.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if and (eq $process "worker") (include "millstream.executors" $root) }}
  serviceAccountName: {{ include "millstream.fullname" $root }}-worker
  automountServiceAccountToken: true
  {{- else }}
  serviceAccountName: {{ include "millstream.fullname" $root }}
  automountServiceAccountToken: false
  {{- end }}
  enableServiceLinks: false  # a Service named millstream would say MILLSTREAM_PORT=tcp://…
  terminationGracePeriodSeconds: {{ index . 4 }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "millstream.selector" $root | nindent 10 }}
          app.kubernetes.io/component: {{ $process }}
    {{- end }}
  containers:
    - name: {{ $process }}
      image: {{ printf "%s:%s" (ternary $root.Values.image.workerRepository $root.Values.image.repository (eq $process "worker")) (include "millstream.imageTag" $root) | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        {{- toYaml (index . 2) | nindent 8 }}
      env:
        {{- include "millstream.environment" $root | nindent 8 }}
        {{- if and (eq $process "worker") (include "millstream.executors" $root) }}
        - name: MILLSTREAM_SPARK_MASTER
          value: k8s://https://kubernetes.default.svc
        - name: MILLSTREAM_SPARK_CONF_FILE
          value: /etc/millstream/spark/spark.conf
        {{- if hasPrefix "file://" $root.Values.archive.url }}
        - name: MILLSTREAM_ARCHIVE_SHARED
          value: "true"
        {{- end }}
        # Spark puts them into its options.
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      {{- if eq $process "api" }}
      ports:
        - {name: http, containerPort: 8080}
      startupProbe:
        httpGet: {path: /livez, port: http, scheme: {{ include "millstream.scheme" $root }}}
        periodSeconds: 2
        failureThreshold: 30
      livenessProbe:
        httpGet: {path: /livez, port: http, scheme: {{ include "millstream.scheme" $root }}}
        periodSeconds: 10
        timeoutSeconds: 3
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ include "millstream.scheme" $root }}}
        periodSeconds: 5
        timeoutSeconds: 3
      lifecycle:
        # The endpoints hear of the end later than the process does.
        preStop:
          exec: {command: [sleep, "5"]}
      {{- end }}
      resources:
        {{- toYaml (index . 3) | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: home, mountPath: /home/millstream}
        {{- if and (eq $process "worker") (include "millstream.executors" $root) }}
        - {name: spark, mountPath: /etc/millstream/spark, readOnly: true}
        {{- end }}
        {{- if $root.Values.archive.existingClaim }}
        - {name: archive, mountPath: /archive}
        {{- end }}
        {{- if $root.Values.tls.secretName }}
        - {name: tls, mountPath: /tls, readOnly: true}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    - {name: home, emptyDir: {}}
    {{- if and (eq $process "worker") (include "millstream.executors" $root) }}
    - name: spark
      configMap: {name: {{ include "millstream.fullname" $root }}-spark}
    {{- end }}
    {{- if $root.Values.archive.existingClaim }}
    - name: archive
      persistentVolumeClaim: {claimName: {{ $root.Values.archive.existingClaim }}}
    {{- end }}
    {{- if $root.Values.tls.secretName }}
    - name: tls
      secret: {secretName: {{ $root.Values.tls.secretName }}}
    {{- end }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
