#!/usr/bin/env bash
# Benchmarks of this checkout against another commit, in turn on one machine: bench-against.sh BASE [part-of-a-name].
# Prints one line per benchmark with both medians and their ratio; exits 1 when a row is slower by more than 15 %
# in each of three rounds.
set -euo pipefail
base=${1:?usage: bench-against.sh BASE [part-of-a-name]}
only=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'git -C "$root" worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT

git -C "$root" worktree add --quiet --detach "$work/base" "$base"
for tree in "$work/base" "$root"; do (cd "$tree" && npm ci --no-audit --no-fund >/dev/null && npm run -s build); done
for round in 1 2 3; do
  (cd "$work/base" && npm run -s bench -- $only --json "$work/base-$round.jsonl" >/dev/null)
  (cd "$root" && npm run -s bench -- $only --json "$work/head-$round.jsonl" >/dev/null)
done
node "$root/scripts/bench-ratios.ts" "$work"
