# What the run.sh of the examples share; each reads it first: . "$(dirname "$0")/../stages.sh"
#
# From there on it is at the root of the repository, which relative paths start from, with the commands of `make setup`.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/bin:$PATH"
export OMP_NUM_THREADS=1 # the matrices are small: several threads wait for each other more than they compute

say() { printf '\n== %s\n' "$*"; }

fail() { # fail LOG COMMAND: the last lines of the log, then the error
    tail -n 20 "$1" >&2
    echo "run.sh: error: $2 failed; all that it said is in $1" >&2
    exit 1
}

same_settings() { # same_settings OUT SETTINGS: an error where OUT has results of other ones
    [ -n "$(ls -A "$1")" ] || printf '%s\n' "$2" >"$1/settings"
    [ -s "$1/settings" ] || {
        echo "run.sh: error: $1: expected an empty folder, or one of this example, found neither; give another folder" >&2
        exit 2
    }
    [ "$2" = "$(cat "$1/settings")" ] || {
        echo "run.sh: error: $1: expected $2, found results of $(cat "$1/settings"); give another folder" >&2
        exit 2
    }
}

run() { # run LOG COMMAND…: quietly; where it fails, the end of its log and an error
    local log=$1
    shift
    "$@" >"$log" 2>&1 || fail "$log" "$1"
}

preprocess() { # preprocess OUT OPTION…: fairseq-preprocess, into a folder that is there once all of it is; log: OUT.log
    [ ! -e "$1" ] || return 0
    rm -rf "$1.part"
    run "$1.log" fairseq-preprocess --destdir "$1.part" "${@:2}"
    mv "$1.part" "$1"
}

first_lines() { # first_lines NUMBER PACKED TEXT: so many lines of a .gz, in a file that is there when all of them are
    [ ! -e "$3" ] || return 0
    gzip -dc "$2" | awk -v n="$1" 'NR <= n' >"$3.part"
    mv "$3.part" "$3"
}

perplexity() { # perplexity NAME LOG: the last one on the validation text in the log of fairseq-train, if there is any
    sed -n "s/.*valid on .*ppl \([0-9.]*\).*/$1: validation perplexity \1/p" "$2" | tail -n 1
}

hypotheses() { # hypotheses OUTPUT: those of fairseq-generate or fairseq-interactive, in the order of the sources
    grep '^H-' "$1" | sort -t- -k2 -n | cut -f3
}
