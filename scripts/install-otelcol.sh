#!/bin/sh
# Installs an OpenTelemetry collector for the tests into .tools/otelcol (ignored by git): the official collector with
# the OTLP receiver and the debug exporter, built from the Go module test/tracing/collector (made by the collector
# builder of the version in its go.mod). Under a minute on two idle cores, nothing when a build of the same module is
# there. Needs Go 1.25 or newer and a Go module proxy. Tests find the result by themselves; OTELCOL_BIN names another
# one.
set -eu

root="$(cd "$(dirname "$0")/.." && pwd)"
module="$root/test/tracing/collector"
target="$root/.tools/otelcol"

if ! command -v go >/dev/null 2>&1; then
  echo "Go is not installed; the OpenTelemetry collector for the tests is built with it. Install Go 1.25 or newer" >&2
  echo "(Debian: apt-get install golang-go, or https://go.dev/dl/) and run sh scripts/install-otelcol.sh again." >&2
  exit 1
fi

hash="$(cat "$module/go.mod" "$module/go.sum" "$module"/*.go | sha256sum | cut -d ' ' -f 1)"
if [ "$(cat "$target/module-hash" 2>/dev/null)" = "$hash" ]; then
  echo "The OpenTelemetry collector is installed: $target/otelcol"
  exit 0
fi

# Into a new folder first: an interrupted build never looks complete.
fresh="$target.$$"
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh"
(cd "$module" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$fresh/otelcol" .)
"$fresh/otelcol" components >/dev/null
echo "$hash" >"$fresh/module-hash"
rm -rf "$target"
mv "$fresh" "$target"
echo "OpenTelemetry collector installed: $target/otelcol"
