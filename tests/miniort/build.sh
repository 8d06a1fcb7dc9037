#!/bin/sh
# Builds the miniature checkout; build.py's --help lists the options.
set -e
root=$(cd -- "$(dirname -- "$0")" >/dev/null && pwd)
python=$(command -v python3 || command -v python) || { echo "build.sh: no python3 on PATH" >&2; exit 127; }
exec "$python" "$root/tools/ci_build/build.py" "$@"
