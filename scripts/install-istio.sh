#!/bin/sh
# Installs what scripts/gateway-conformance.ts runs into .tools/istio (ignored by git): Istio's control plane
# (pilot-discovery), the controllers of Kubernetes (kube-controller-manager), the conformance suite of the Gateway API
# Inference Extension with its echo server, and the CRDs of Gateway API and Istio. Built with Go from their modules:
# ten minutes on two idle cores, nothing when they are there. Needs Go 1.26 or newer and a Go module proxy.
set -eu

istio=v0.0.0-20260827124520-eed52ebb66ad
extension=v1.6.0
gateway=v1.6.1

root="$(cd "$(dirname "$0")/.." && pwd)"
kubernetes_module="$root/test/kubernetes/tools"
kubernetes="$(sed -n 's/^\tk8s.io\/kubernetes v//p' "$kubernetes_module/go.mod")"
target="$root/.tools/istio"

if ! command -v go >/dev/null 2>&1; then
  echo "Go is not installed; Istio's control plane and the conformance suite are built with it. Install Go 1.26 or" >&2
  echo "newer (Debian: apt-get install golang-go, or https://go.dev/dl/) and run sh scripts/install-istio.sh again." >&2
  exit 1
fi

versions="$(cat "$0" "$kubernetes_module/go.mod" "$kubernetes_module/go.sum" | sha256sum | cut -d ' ' -f 1)"
if [ "$(cat "$target/versions" 2>/dev/null)" = "$versions" ]; then
  echo "Istio $istio and the conformance suite $extension are installed: $target"
  exit 0
fi

# Into a new folder first: an interrupted build never looks complete.
mkdir -p "$root/.tools"
fresh="$target.$$"
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh/modules" "$fresh/crds"
export CGO_ENABLED=0 GOWORK=off

# Prints the folder of module $1 in the module cache.
folder_of() {
  (cd "$fresh/modules" && GOFLAGS=-mod=mod go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p'
}

# Builds package $2 of the module in folder $1 as $3.
build() {
  (cd "$1" && go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$fresh/$3" "$2")
}

printf 'module tools\n' >"$fresh/modules/go.mod"
istio_folder="$(folder_of "istio.io/istio@$istio")"
gateway_folder="$(folder_of "sigs.k8s.io/gateway-api@$gateway")"
echo_folder="$(folder_of "sigs.k8s.io/gateway-api/conformance@$gateway")"
suite_folder="$(folder_of "sigs.k8s.io/gateway-api-inference-extension/conformance@$extension")"

# The suite's go.mod takes the extension from the folder above it, which is none in the module cache.
cp "$suite_folder/go.mod" "$fresh/modules/suite.mod"
cp "$suite_folder/go.sum" "$fresh/modules/suite.sum"
chmod u+w "$fresh/modules/suite.mod" "$fresh/modules/suite.sum"
go mod edit -dropreplace sigs.k8s.io/gateway-api-inference-extension "$fresh/modules/suite.mod"
(cd "$suite_folder" && go test -c -trimpath -modfile="$fresh/modules/suite.mod" -mod=mod -ldflags '-s -w' \
  -o "$fresh/conformance" .)
build "$echo_folder" ./echo-basic echo-basic

# The module of the API server needs no more than checksums of what the controllers import beside it.
cp "$kubernetes_module/go.mod" "$kubernetes_module/go.sum" "$fresh/modules"
(cd "$kubernetes_module" && go build -trimpath -modfile="$fresh/modules/go.mod" -mod=mod \
  -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$kubernetes" \
  -o "$fresh/kube-controller-manager" k8s.io/kubernetes/cmd/kube-controller-manager)
build "$istio_folder" ./pilot/cmd/pilot-discovery pilot-discovery

cp "$istio_folder/manifests/charts/base/files/crd-all.gen.yaml" "$fresh/crds/istio.yaml"
for file in "$gateway_folder"/config/crd/standard/*.yaml; do
  echo '---'
  cat "$file"
done >"$fresh/crds/gateway-api.yaml"
chmod u+w "$fresh"/crds/*

"$fresh/kube-controller-manager" --version >/dev/null
"$fresh/pilot-discovery" --help >/dev/null
"$fresh/conformance" -test.list . >/dev/null
rm -rf "$fresh/modules"
echo "$versions" >"$fresh/versions"
rm -rf "$target"
mv "$fresh" "$target"
trap - EXIT
echo "Istio $istio and the conformance suite $extension installed: $target"
