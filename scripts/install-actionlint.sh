#!/bin/sh
# Installs actionlint, which checks the workflows of .github/workflows, for the tests into .tools/actionlint (ignored by
# git), by its Go module. Does nothing when that version is there already. Needs Go 1.25 or newer and a Go module proxy;
# builds for about a minute. Tests find it by themselves; ACTIONLINT_BIN names another one.
set -eu

version="${ACTIONLINT_VERSION:-1.7.12}"
root="$(cd "$(dirname "$0")/.." && pwd)"
target="$root/.tools/actionlint"
binary="$target/actionlint"

if [ -x "$binary" ] && [ "$(cat "$target/version" 2>/dev/null)" = "$version" ]; then
  echo "actionlint $version is installed: $binary"
  exit 0
fi
if ! command -v go >/dev/null 2>&1; then
  echo "Go is not installed; actionlint is built with it. Install Go 1.25 or newer (https://go.dev/dl/) and run" >&2
  echo "sh scripts/install-actionlint.sh again, or set ACTIONLINT_BIN to an actionlint that is there." >&2
  exit 1
fi

# Into a new folder first: an interrupted build never looks complete.
fresh="$target.$$"
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh"
CGO_ENABLED=0 GOBIN="$fresh" go install -trimpath -ldflags '-s -w' \
  "github.com/rhysd/actionlint/cmd/actionlint@v$version"
"$fresh/actionlint" -version >/dev/null
echo "$version" >"$fresh/version"
rm -rf "$target"
mv "$fresh" "$target"
echo "actionlint $version installed: $binary"
