#!/usr/bin/env bash
# Make the virtual environment that the Makefile's targets run in:  scripts/setup.sh .venv
#
# The order matters. fairseq-fixed comes as source and its build imports torch and numpy: with both and the build
# tools installed first and build isolation off it takes a minute or two; otherwise pip fetches a second torch.
# Which torch (CPU or CUDA) is pip's to choose from the indexes it is configured with.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }
is_311() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in python3.11 python3 python "$HOME"/.pyenv/versions/3.11*/bin/python "$(uv python find 3.11 2>/dev/null)"; do
        if [ -n "$candidate" ] && is_311 "$candidate"; then
            "$candidate" -c 'import os, sys; print(os.path.realpath(sys.executable))'
            return
        fi
    done
    return 1
}

if ! is_311 "$venv/bin/python"; then
    python=$(find_python) || die "Python 3.11 was not found (looked for python3.11, python3, python, pyenv, uv). Install" \
        "it, for example: apt-get install python3.11 python3.11-venv | pyenv install 3.11 | uv python install 3.11"
    say "making $venv with $python"
    "$python" -m venv --clear "$venv" || die "could not make $venv; on Debian and Ubuntu: apt-get install python3.11-venv"
fi
if ! command -v "${CXX:-c++}" >/dev/null && ! command -v g++ >/dev/null; then
    die "a C++ compiler is needed to build fairseq; on Debian and Ubuntu: apt-get install g++"
fi

# What nobody imports need not be compiled: half of pip's time.
install() { "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-compile -c constraints.txt "$@"; }

say "1/4 build tools"
install setuptools wheel cython 'numpy<2'
command -v cmake >/dev/null || install cmake  # for kenlm
say "2/4 torch"
install torch
say "3/4 fairseq (built from source, one or two minutes)"
install --no-build-isolation fairseq-fixed
say "4/4 this package, what it can use, and its tools (eflomal and kenlm are built from source, a minute)"
PATH=$(cd "$venv/bin" && pwd):$PATH install --no-build-isolation -e \
    '.[metrics,hf,plots,align,ngram,automata,pieces,morphemes,languages,transfer,completion,test]'
# fairseq asks for torchaudio, which only its speech tasks use. Beside a CPU build of torch its library does not load, and
# transformers imports what is installed.
"$venv/bin/python" -m pip uninstall -qq --yes torchaudio
say "ready: $venv ($("$venv/bin/python" -c 'import platform, torch; print("Python", platform.python_version() + ", torch", torch.__version__)')); \`. $venv/bin/activate\` puts its commands into the PATH"
