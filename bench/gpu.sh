#!/usr/bin/env bash
# Everything that only a machine with an NVIDIA GPU can answer, in one command; bench/tools/gpu.py says how it is called.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec "${PYTHON:-python3}" bench/tools/gpu.py "$@"
