#!/usr/bin/env bash
# Make the virtual environment that the Makefile's targets run in:  [PYTHON=python3.12] scripts/setup.sh .venv
#
# The order matters. fairseq-fixed comes as source and its build imports numpy: it and the build tools are installed
# first, and build isolation is off; otherwise pip fetches a torch for the build alone.
# Which torch (CPU or CUDA) is pip's to choose from the indexes it is configured with.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }
is_supported() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; }
base_of() { "$1" -c 'import os, sys; print(os.path.realpath(sys.base_prefix), *sys.version_info[:3])' 2>/dev/null; }

find_python() {
    local candidate candidates=(python3.11 python3.12 python3.13 python3 python
        "$HOME"/.pyenv/versions/3.1[123].*/bin/python "$(uv python find '>=3.11,<3.14' 2>/dev/null)")
    for candidate in "${candidates[@]}"; do
        if is_supported "$candidate"; then
            "$candidate" -c 'import os, sys; print(os.path.realpath(sys.executable))'
            return
        fi
    done
    return 1
}

if [ -n "${PYTHON:-}" ]; then
    is_supported "$PYTHON" || die "PYTHON=$PYTHON: expected Python 3.11, 3.12 or 3.13, found" \
        "$("$PYTHON" --version 2>/dev/null || echo "no Python"); choose another, or leave PYTHON out"
fi
if ! is_supported "$venv/bin/python" || { [ -n "${PYTHON:-}" ] && [ "$(base_of "$PYTHON")" != "$(base_of "$venv/bin/python")" ]; }; then
    python=${PYTHON:-$(find_python)} || die "Python 3.11, 3.12 or 3.13 was not found in PATH, pyenv and uv. Install one, for" \
        "example: apt-get install python3 python3-venv | pyenv install 3.12 | uv python install 3.12"
    say "making $venv with $python"
    "$python" -m venv --clear "$venv" || die "could not make $venv; on Debian and Ubuntu: apt-get install python3-venv"
fi
if ! command -v "${CXX:-c++}" >/dev/null && ! command -v g++ >/dev/null; then
    die "a C++ compiler is needed to build fairseq; on Debian and Ubuntu: apt-get install g++"
fi

# What nobody imports need not be compiled: half of pip's time.
pip() { "$venv/bin/python" -m pip "$@"; }
install() { pip install -qq --disable-pip-version-check --no-compile -c constraints.txt "$@"; }

# What is built from source: without debug symbols, which take two fifths of the compiler's time, and fairseq without the
# extensions that are compiled against torch (for BASE layers, Levenshtein Transformers and an example; fairseq imports
# each where it is used). They take most of its build, and nothing here asks for them. Its setup.py finds a module in
# torch's place that leaves them out, so that it need not wait for torch either. kenlm compiles everything twice, first
# with cmake into a library that its Python module does not load: it finds a cmake that does nothing.
flags="$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_config_var("CFLAGS"))') -g0"
wheels=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$wheels"' EXIT
mkdir -p "$wheels/no-cmake" "$wheels/no-torch/torch/utils"
ln -s "$(type -P true)" "$wheels/no-cmake/cmake"
touch "$wheels"/no-torch/torch/{,utils/}__init__.py
cat > "$wheels/no-torch/torch/utils/cpp_extension.py" <<'PYTHON'
from setuptools import Extension
from setuptools.command.build_ext import build_ext


def CppExtension(name, sources):
    return Extension(name, [])


class BuildExtension(build_ext):
    def finalize_options(self):
        super().finalize_options()
        self.extensions = [one for one in self.extensions if one.sources]
PYTHON
build() {
    PATH=$wheels/no-cmake:$(cd "$venv/bin" && pwd):$PATH CFLAGS=$flags PYTHONPATH=$wheels/no-torch pip wheel -qq \
        --disable-pip-version-check --no-deps --no-build-isolation -c constraints.txt -w "$wheels" "$@"
}

say "1/3 build tools"
install setuptools wheel cython numpy
build --no-cache-dir fairseq-fixed & # no other environment shall get this one out of pip's cache
fairseq=$!
build "kenlm; python_version<'3.13'" eflomal &
others=$!
say "2/3 torch and what needs no compiler; beside it, fairseq, kenlm and eflomal are built from source (a few minutes)"
install torch
grep -vE '^(#|eflomal|fairseq-fixed|kenlm|torchaudio)' constraints.txt > "$wheels/rest.txt"
install --no-deps -r "$wheels/rest.txt"
wait "$fairseq"
wait "$others"
say "3/3 this package, what it can use, and its tools"
install --no-build-isolation --find-links "$wheels" fairseq-fixed -e \
    '.[metrics,hf,plots,align,ngram,pieces,morphemes,languages,hunspell,transfer,peft,test]' -e ./research
# fairseq asks for torchaudio, which only its speech tasks use. Beside a CPU build of torch its library does not load, and
# transformers imports what is installed.
pip uninstall -qq --yes torchaudio
# fairseq has strings with invalid escapes, of which Python 3.12 warns when it compiles them: here, without the warnings.
"$venv/bin/python" -W ignore -m compileall -q "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"/fairseq{,_cli}
say "ready: $venv ($("$venv/bin/python" -c 'import platform, torch; print("Python", platform.python_version() + ", torch", torch.__version__)')); \`. $venv/bin/activate\` puts its commands into the PATH"
