#!/bin/sh
# Installs h2spec, the conformance tests of HTTP/2, for the tests into .tools/h2spec (ignored by git), by its Go module.
# Does nothing when that version is there already. Needs Go. Tests find it by themselves; H2SPEC_BIN names another one.
set -eu

version="${H2SPEC_VERSION:-v2.2.1+incompatible}"
target="$(cd "$(dirname "$0")/.." && pwd)/.tools/h2spec"

if [ -x "$target/h2spec" ] && [ "$(cat "$target/version" 2>/dev/null)" = "$version" ]; then
  echo "h2spec $version is installed: $target/h2spec"
  exit 0
fi

mkdir -p "$target"
GOBIN="$target" go install "github.com/summerwind/h2spec/cmd/h2spec@$version"
echo "$version" >"$target/version"
echo "h2spec $version installed: $target/h2spec"
