#!/bin/sh
# Runs tests of a cure on the program before it, in a worktree of its own: they show the fault.
#   sh scripts/past-bug.sh COMMIT TEST…        COMMIT: the cure
set -eu

cure=$1
shift
folder=$(mktemp -d)
git worktree add --quiet --detach "$folder" "$cure^"
trap 'cd / && git -C "$root" worktree remove --force "$folder"' EXIT
root=$(pwd)
cd "$folder"
git checkout --quiet "$cure" -- "$@"
npm ci --no-audit --no-fund
npm run --silent build
npx vitest run "$@"
