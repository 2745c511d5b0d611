#!/bin/sh
# Installs the service into one folder, without what only tests and builds need:
#
#   deploy/install_service.sh FOLDER WHEEL [further arguments of `pip install`]
#
# deploy/Containerfile runs it. WHEEL is what `python -m build --wheel` or `pip wheel --no-deps .` makes.
set -eu
folder=$1 wheel=$2
shift 2
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --no-cache-dir --no-compile --disable-pip-version-check \
    "$@" "$wheel[service,postgres]"
"$folder/bin/python" -m pip uninstall --quiet --yes pip setuptools
# Tests of numpy, scipy and scikit-learn, and what Python writes when it first runs.
find "$folder" -depth -type d \( -name tests -o -name __pycache__ \) -exec rm -r {} +
"$folder/bin/reticent" --version
