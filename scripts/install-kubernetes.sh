#!/bin/sh
# Installs a Kubernetes API server and etcd for the tests into .tools/kubernetes (ignored by git), and the custom
# resource definitions of the Gateway API Inference Extension (GIE). Builds both programs from the Go module
# test/kubernetes/tools: three to four minutes on two idle cores, nothing when a build of the same module is there.
# Needs Go 1.26 or newer and a Go module proxy. Tests find the result by themselves.
set -eu

root="$(cd "$(dirname "$0")/.." && pwd)"
module="$root/test/kubernetes/tools"
target="$root/.tools/kubernetes"
kubernetes="$(sed -n 's/^\tk8s.io\/kubernetes v//p' "$module/go.mod")"

if ! command -v go >/dev/null 2>&1; then
  echo "Go is not installed; the Kubernetes API server for the tests is built with it. Install Go 1.26 or newer" >&2
  echo "(Debian: apt-get install golang-go, or https://go.dev/dl/) and run sh scripts/install-kubernetes.sh again." >&2
  exit 1
fi

mkdir -p "$target"

# Writes the CRDs of GIE release $1 to crds/$1.yaml.
install_crds() {
  [ -s "$target/crds/$1.yaml" ] && return
  folder="$(cd "$module" && GOFLAGS=-mod=mod go mod download -json "sigs.k8s.io/gateway-api-inference-extension@$1" \
    | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')"
  mkdir -p "$target/crds"
  for file in "$folder"/config/crd/bases/*.yaml; do
    # Each file begins a document of its own.
    case "$(head -n 1 "$file")" in ---*) ;; *) echo '---' ;; esac
    cat "$file"
  done >"$target/crds/$1.yaml.$$"
  mv "$target/crds/$1.yaml.$$" "$target/crds/$1.yaml"
}
# Writes custom resources of other projects that the charts make objects of: module $1, release $2, file $3.
install_crd_of() {
  name="$(basename "$3")"
  [ -s "$target/crds/$name" ] && return
  folder="$(cd "$module" && GOFLAGS=-mod=mod go mod download -json "$1@$2" |
    sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')"
  mkdir -p "$target/crds"
  cp "$folder/$3" "$target/crds/$name.$$"
  chmod u+w "$target/crds/$name.$$"
  mv "$target/crds/$name.$$" "$target/crds/$name"
}
install_crd_of sigs.k8s.io/gateway-api v1.5.0 config/crd/standard/gateway.networking.k8s.io_httproutes.yaml
install_crd_of github.com/prometheus-operator/prometheus-operator v0.85.0 \
  example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml

for release in v0.5.1 v1.0.0 v1.5.0 v1.6.0; do install_crds "$release"; done

hash="$(cat "$module/go.mod" "$module/go.sum" "$module"/*/main.go | sha256sum | cut -d ' ' -f 1)"
if [ "$(cat "$target/bin/module-hash" 2>/dev/null)" = "$hash" ]; then
  echo "Kubernetes API server $kubernetes is installed: $target/bin"
  exit 0
fi

# Into a new folder first: an interrupted build never looks complete.
fresh="$target/bin.$$"
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh"
# Without the version the server calls itself v0.0.0-master, and a chart's kubeVersion rule refuses it.
(cd "$module" && CGO_ENABLED=0 go build -trimpath \
  -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$kubernetes" -o "$fresh/" ./apiserver ./etcd)
"$fresh/apiserver" --version >/dev/null
"$fresh/etcd" --version >/dev/null
echo "$hash" >"$fresh/module-hash"
rm -rf "$target/bin"
mv "$fresh" "$target/bin"
echo "Kubernetes API server $kubernetes installed: $target/bin"
