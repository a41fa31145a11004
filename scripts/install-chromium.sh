#!/bin/sh
# Installs Debian's Chromium for the tests of the page. Does nothing when one is there already. Needs apt and its
# rights. Tests find it in PATH; CHROMIUM_BIN names another one.
set -eu

if command -v chromium >/dev/null 2>&1; then
  echo "Chromium is installed: $(command -v chromium)"
  exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
chromium --version
