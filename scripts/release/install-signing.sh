#!/bin/sh
# Installs syft, which lists what an image contains, and cosign, which signs, into .tools/signing (ignored by git), by
# their Go modules: what is built is held by Go's checksum database. Needs Go 1.26 or newer and a Go module proxy;
# builds for some minutes.
set -eu

syft="${SYFT_VERSION:-1.57.0}"
cosign="${COSIGN_VERSION:-3.1.3}"
root="$(cd "$(dirname "$0")/../.." && pwd)"
target="$root/.tools/signing"

if [ "$(cat "$target/version" 2>/dev/null)" = "$syft $cosign" ]; then
  echo "syft $syft and cosign $cosign are installed: $target"
  exit 0
fi

# Into a new folder first: an interrupted build never looks complete.
fresh="$target.$$"
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh"
for package in "github.com/anchore/syft/cmd/syft@v$syft" "github.com/sigstore/cosign/v3/cmd/cosign@v$cosign"; do
  CGO_ENABLED=0 GOBIN="$fresh" go install -trimpath -ldflags '-s -w' "$package"
done
"$fresh/syft" version >/dev/null
"$fresh/cosign" version >/dev/null
echo "$syft $cosign" >"$fresh/version"
rm -rf "$target"
mv "$fresh" "$target"
echo "syft $syft and cosign $cosign installed: $target"
