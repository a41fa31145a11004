{{- /* Generated from deploy/charts/router by "npm run chart-library": change it there. */}}
{{/*
The nearest known name, for messages.
*/}}

{{/* Changes (insert, delete, replace a letter) from one text to another. Given: a list of the two. */}}
{{- define "pointsman.distance" -}}
{{- $to := splitList "" (index . 1) -}}
{{- $row := untilStep 0 (len $to | add1 | int) 1 -}}
{{- range $i, $letter := splitList "" (index . 0) -}}
{{- $next := list (add1 $i | int) -}}
{{- range $j, $other := $to -}}
{{- $changed := add (index $row $j) (eq $letter $other | ternary 0 1) -}}
{{- $next = append $next (min $changed (add1 (index $row (add1 $j | int))) (add1 (index $next $j)) | int) -}}
{{- end -}}
{{- $row = $next -}}
{{- end -}}
{{- last $row -}}
{{- end -}}

{{/* `; did you mean X?` for the nearest of the known names, or all of them. Given: a list of the name and the known ones. */}}
{{- define "pointsman.didYouMean" -}}
{{- $name := index . 0 -}}
{{- $best := "" -}}
{{- $least := 1000 -}}
{{- range index . 1 -}}
{{- $distance := include "pointsman.distance" (list (lower $name) (lower .)) | int -}}
{{- if lt $distance $least -}}{{- $least = $distance -}}{{- $best = . -}}{{- end -}}
{{- end -}}
{{- if or (le $least 2) (le (mul 3 $least) (len $name)) -}}
{{- printf "; did you mean %s?" $best -}}
{{- else -}}
{{- printf "; choose one of %s" (join ", " (index . 1)) -}}
{{- end -}}
{{- end -}}

{{/* Fails on a key that is not known. Given: a list of the path, the map and the known keys. */}}
{{- define "pointsman.checkKeys" -}}
{{- $path := index . 0 -}}
{{- $known := index . 2 -}}
{{- range $key, $_ := index . 1 -}}
{{- if not (has $key $known) -}}
{{- fail (printf "%s%s: unknown value%s" $path $key (include "pointsman.didYouMean" (list $key $known))) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Fails unless the text is one of the choices. Given: a list of the path, the text and the choices. */}}
{{- define "pointsman.checkChoice" -}}
{{- $text := index . 1 | toString -}}
{{- if not (has $text (index . 2)) -}}
{{- fail (printf "%s: unknown name %q%s" (index . 0) $text (include "pointsman.didYouMean" (list $text (index . 2)))) -}}
{{- end -}}
{{- end -}}
