#!/bin/sh
# Installs promtool, which tests the rules of deploy/monitoring, into .tools/promtool (ignored by git), from Debian's
# package `prometheus`; no service of it is installed. Does nothing when it is there already. Needs apt-get and dpkg.
# Tests find it by themselves; PROMTOOL_BIN names another one.
set -eu

root="$(cd "$(dirname "$0")/.." && pwd)"
target="$root/.tools/promtool"

if [ -x "$target/promtool" ]; then
  echo "promtool is installed: $target/promtool"
  exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "There is no apt-get: install promtool by your system's means and name it with PROMTOOL_BIN." >&2
  exit 1
fi

# Into a new folder first: an interrupted installation never looks complete.
fresh="$target.$$"
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh"
cd "$fresh"
# Without package lists (a fresh container) they are fetched first, which takes root.
apt-get download -qq prometheus 2>/dev/null || { apt-get update -qq && apt-get download -qq prometheus; }
dpkg -x prometheus_*.deb unpacked
mkdir -p "$target"
mv unpacked/usr/bin/promtool "$target/promtool"
"$target/promtool" --version
