#!/bin/sh
# Installs what the test of the container image needs, from Debian's packages: buildah and mmdebstrap, and with them a
# root file system of Debian in .tools/image (ignored by git) that stands in for the base of the Dockerfile. Does
# nothing when all is there already. Needs apt-get and root, or sudo without a password.
set -eu

root="$(cd "$(dirname "$0")/.." && pwd)"
base="$root/.tools/image/debian.tar"

if ! command -v buildah >/dev/null 2>&1 || ! command -v mmdebstrap >/dev/null 2>&1; then
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "There is no apt-get: install buildah and mmdebstrap by your system's means, and run this script again." >&2
    exit 1
  fi
  as_root=''
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      echo "Not root: run sudo sh scripts/install-buildah.sh" >&2
      exit 1
    fi
    as_root='sudo -n'
  fi
  export DEBIAN_FRONTEND=noninteractive
  $as_root apt-get update -qq
  $as_root apt-get install -y -qq --no-install-recommends buildah mmdebstrap >/dev/null
fi
if [ ! -f "$base" ]; then
  # Into a new file first: an interrupted one never looks complete.
  mkdir -p "$root/.tools/image"
  mmdebstrap --quiet --variant=essential --include=ca-certificates,libatomic1,libstdc++6 bookworm "$base.$$.tar"
  mv "$base.$$.tar" "$base"
fi
if ! unshare --mount true 2>/dev/null; then
  echo "This system lets $(id -un) make no mounts: the image cannot be run." >&2
  exit 1
fi
echo "$(buildah --version); base: $base"
