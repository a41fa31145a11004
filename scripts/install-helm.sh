#!/bin/sh
# Installs Helm for the tests of the charts into .tools/helm (ignored by git). Does nothing when that version is there
# already. Needs Go 1.26 or newer and a Go module proxy; builds for about two minutes. Tests find it by themselves;
# HELM_BIN names another one.
set -eu

version="${HELM_VERSION:-3.22.0}"
root="$(cd "$(dirname "$0")/.." && pwd)"
target="$root/.tools/helm"
binary="$target/helm"

if [ -x "$binary" ] && [ "$(cat "$target/version" 2>/dev/null)" = "$version" ]; then
  echo "Helm $version is installed: $binary"
  exit 0
fi
if ! command -v go >/dev/null 2>&1; then
  echo "Go is not installed; Helm is built with it. Install Go 1.26 or newer (https://go.dev/dl/) and run" >&2
  echo "sh scripts/install-helm.sh again, or set HELM_BIN to a Helm 3 that is there." >&2
  exit 1
fi

# Into a new folder first: an interrupted build never looks complete.
fresh="$target.$$"
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh"
CGO_ENABLED=0 GOBIN="$fresh" go install -trimpath -ldflags '-s -w' "helm.sh/helm/v3/cmd/helm@v$version"
"$fresh/helm" version >/dev/null
echo "$version" >"$fresh/version"
rm -rf "$target"
mv "$fresh" "$target"
echo "Helm $version installed: $binary"
