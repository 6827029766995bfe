#!/bin/sh
# Fetch packages that ship an OpenAPI document, beside our environment and without what they depend on, for the tests that
# read them; without this the tests are skipped.
set -eu
cd "$(dirname "$0")/.."
exec .venv/bin/pip install --quiet --no-deps --upgrade --target .venvs/openapi-documents \
    apache-airflow-core==3.3.2 jupyter_server==2.21.1 jupyterlab_server==2.28.1
