#!/bin/sh
# Installs two load generators that others wrote, inference-perf and aiperf, for `npm run outside-benchmarks`, into
# .tools/load-generators (ignored by git), each in a virtual environment. Does nothing when these versions are there
# already. Needs Python 3.12 or newer with venv and pip (PYTHON names it) and 2 GB of disk.
set -eu

inference_perf="${INFERENCE_PERF_VERSION:-0.7.0}"
aiperf="${AIPERF_VERSION:-0.13.0}"
root="$(cd "$(dirname "$0")/.." && pwd)"
target="$root/.tools/load-generators"
python="${PYTHON:-python3}"
mark="inference-perf $inference_perf, aiperf $aiperf"

if [ "$(cat "$target/version" 2>/dev/null)" = "$mark" ]; then
  echo "Load generators are installed: $mark"
  exit 0
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
  echo "inference-perf needs Python 3.12 or newer, and $python is older: name another one with PYTHON." >&2
  exit 1
fi

# A virtual environment knows its own path, so it is made where it stays. The version is written last: an interrupted
# installation never looks complete.
rm -rf "$target"
mkdir -p "$target"
for package in "inference-perf==$inference_perf" "aiperf==$aiperf"; do
  name="${package%%=*}"
  "$python" -m venv "$target/$name"
  "$target/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$package"
done
echo "$mark" >"$target/version"
echo "Load generators installed: $mark"
